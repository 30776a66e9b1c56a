#include "io/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/error.hpp"
#include "io/descriptor.hpp"
#include "io/files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdvice = "set device.cache to a folder with room for unpacked data";

std::string own_temporary_folder() {
    std::error_code error;
    fs::path base = fs::temp_directory_path(error);
    if (error) base = "/tmp";
    const std::string folder = (base / fmt::format("lockstep-{}", ::getuid())).string();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        fail(ErrorKind::kRuntime, "cannot make {}: {}; {}", folder, system_reason(errno), kAdvice);
    }
    // The name can be guessed: somebody else's folder, or a link to one, could hold anything.
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::getuid()) {
        fail(ErrorKind::kRuntime, "{} is not a folder of this user; {}", folder, kAdvice);
    }
    return folder;
}

/// Held until it goes, or until the process ends. Where the file system has no locks two processes may both make a
/// copy: the same, renamed twice.
Descriptor lock_of(const std::string& path) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.open()) fail(ErrorKind::kRuntime, "cannot write {}: {}; {}", path, system_reason(errno), kAdvice);
    while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return Descriptor(file.release());
}

}  // namespace

std::string cached_copy(const std::string& folder, const std::string& name,
                        FunctionRef<void(const std::string& path)> make) {
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) fail(ErrorKind::kRuntime, "cannot make {}: {}; {}", folder, error.message(), kAdvice);
    const std::string place = folder.empty() ? own_temporary_folder() : folder;
    const std::string path = (fs::path(place) / name).string();
    if (fs::exists(path, error)) return path;

    const std::string lock_path = path + ".lock";
    const Descriptor lock = lock_of(lock_path);
    if (fs::exists(path, error)) return path;  // made while this process waited
    const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
    try {
        make(temporary);
        if (::rename(temporary.c_str(), path.c_str()) != 0) fail_write(path, errno);
        sync_folder(place);
    } catch (...) {
        fs::remove(temporary, error);
        fs::remove(lock_path, error);
        throw;
    }
    fs::remove(lock_path, error);
    return path;
}

}  // namespace lockstep
