#include "io/random_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

int open_to_read(const std::string& path) {
    // Of files it says nothing; a pipe, which is refused, would wait for a writer without it.
    const int fd = open_path(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) fail(ErrorKind::kData, "cannot open {}: {}", shown_path(path), system_reason(errno));
    return fd;
}

void read_from(int fd, const std::string& path, int64_t offset, std::span<std::byte> out) {
    constexpr size_t kMost = size_t{1} << 30;  // Linux reads at most 2 GiB - 4 KiB at once
    for (size_t done = 0; done < out.size();) {
        const int64_t at = offset + static_cast<int64_t>(done);
        const ssize_t count = ::pread(fd, out.data() + done, std::min(out.size() - done, kMost), at);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(ErrorKind::kData, "cannot read {} at 0x{:x}: {}", path, at, system_reason(errno));
        if (count == 0) {
            fail(ErrorKind::kData, "{} ends at 0x{:x}, but {} bytes from 0x{:x} on are needed; did it change?", path,
                 at, out.size(), offset);
        }
        done += static_cast<size_t>(count);
    }
}

}  // namespace

RandomFile::RandomFile(std::string path, bool keep_open) : path_(std::move(path)), file_(open_to_read(path_)) {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0)
        fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path_), system_reason(errno));
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::kData, "cannot read {}: it is no file", shown_path(path_));
    size_ = status.st_size;
    if (!keep_open) file_.close();
}

void RandomFile::read(int64_t offset, std::span<std::byte> out) const {
    if (file_.open()) return read_from(file_.get(), path_, offset, out);
    const Descriptor file(open_to_read(path_));
    read_from(file.get(), path_, offset, out);
}

}  // namespace lockstep
