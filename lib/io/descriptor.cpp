#include "io/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "io/shown_path.hpp"

namespace lockstep {

int Descriptor::close() {
    if (fd_ < 0) return 0;
    // Not repeated after EINTR: Linux has released the number by then, and another thread may own it.
    return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

int open_path(const std::string& path, int flags, unsigned mode) {
    if (path.find('\0') == std::string::npos) return ::open(path.c_str(), flags, mode);
    errno = EINVAL;
    return -1;
}

std::string system_reason(int error) {
    return std::generic_category().message(error);
}

int write_all(int fd, std::span<const std::byte> bytes) {
    constexpr size_t kMost = size_t{1} << 30;  // Linux writes at most 2 GiB - 4 KiB at once
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMost));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return 0;
}

std::string folder_of(const std::string& path) {
    const size_t slash = path.find_last_of('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

void fail_write(const std::string& path, int error) {
    const char* advice = "";
    if (error == ENOSPC || error == EDQUOT) advice = "; free some space or write elsewhere";
    if (error == EROFS || error == EACCES || error == EPERM) advice = "; write to a folder that this user may change";
    if (error == ENOENT || error == ENOTDIR) advice = "; does its folder exist?";
    fail(ErrorKind::kRuntime, "cannot write {}: {}{}", shown_path(path), system_reason(error), advice);
}

}  // namespace lockstep
