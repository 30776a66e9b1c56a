#include "io/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "io/descriptor.hpp"
#include "io/files.hpp"
#include "io/random_file.hpp"

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
    Descriptor file(open_path(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.open()) fail(ErrorKind::kRuntime, "cannot write {}: {}; {}", path, system_reason(errno), kAdvice);
    while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return Descriptor(file.release());
}

/// Size and contents, each piece hashed on top of those before.
std::string sum_of(const RandomFile& file) {
    constexpr int64_t kPiece = int64_t{1} << 20;
    std::vector<std::byte> piece(static_cast<size_t>(std::min(file.size(), kPiece)));
    uint64_t hash = 0;
    for (int64_t at = 0; at < file.size(); at += kPiece) {
        const auto part = std::span(piece).first(static_cast<size_t>(std::min(file.size() - at, kPiece)));
        file.read(at, part);
        hash = hash64(part, hash);
    }
    return fmt::format("{} {}\n", file.size(), hex16(hash));
}

std::string sum_path(const std::string& path) {
    return path + ".sum";
}

/// Whether the copy is the one that was made: a disk that was full or failing, or a hand, may have changed it since.
bool is_whole(const std::string& path) {
    std::error_code error;
    if (!fs::exists(path, error) || !fs::exists(sum_path(path), error)) return false;
    try {
        const std::vector<std::byte> kept = read_file(sum_path(path));
        const std::string sum(reinterpret_cast<const char*>(kept.data()), kept.size());
        const RandomFile file(path);
        return sum.starts_with(fmt::format("{} ", file.size())) && sum == sum_of(file);
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

std::string cached_copy(const std::string& folder, const std::string& name,
                        FunctionRef<void(const std::string& path)> make) {
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) fail(ErrorKind::kRuntime, "cannot make {}: {}; {}", folder, error.message(), kAdvice);
    const std::string place = folder.empty() ? own_temporary_folder() : folder;
    const std::string path = (fs::path(place) / name).string();
    if (is_whole(path)) return path;

    const std::string lock_path = path + ".lock";
    const Descriptor lock = lock_of(lock_path);
    if (is_whole(path)) return path;  // made while this process waited
    if (fs::exists(path, error) && fs::exists(sum_path(path), error)) {
        warn("{}: not as it was written, or {} is not; made anew", path, sum_path(path));
    }
    const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
    try {
        make(temporary);
        write_file_atomic(sum_path(path), sum_of(RandomFile(temporary)));
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
