#include "io/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io/descriptor.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
    const Descriptor file(open_path(path, O_RDONLY | O_CLOEXEC));
    if (!file.open()) fail(ErrorKind::kData, "cannot open {}: {}", shown_path(path), system_reason(errno));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0)
        fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), system_reason(errno));
    if (S_ISDIR(status.st_mode))
        fail(ErrorKind::kData, "cannot read {}: it is a folder, a file is needed", shown_path(path));

    // The size is a hint: pipes and /proc files have none, and a file may grow. One byte more finds the end at once.
    constexpr size_t kLeast = 4096, kMost = size_t{1} << 30;
    std::vector<std::byte> bytes(std::max(static_cast<size_t>(status.st_size) + 1, kLeast));
    size_t done = 0;
    for (;;) {
        if (done == bytes.size()) bytes.resize(2 * bytes.size());
        const ssize_t count = ::read(file.get(), bytes.data() + done, std::min(bytes.size() - done, kMost));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), system_reason(errno));
        if (count == 0) break;
        done += static_cast<size_t>(count);
    }
    bytes.resize(done);
    return bytes;
}

void write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
    AtomicFile file(path);
    file.write(bytes);
    file.commit();
}

void write_file_atomic(const std::string& path, const std::string& text) {
    write_file_atomic(path, bytes_of(text));
}

void write_file_synced(const std::string& path, std::span<const std::byte> bytes) {
    Descriptor file(open_path(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file.open()) fail_write(path, errno);
    if (const int error = write_all(file.get(), bytes)) fail_write(path, error);
    if (::fsync(file.get()) != 0) fail_write(path, errno);
    if (const int error = file.close()) fail_write(path, error);
}

void sync_folder(const std::string& path) {
    const Descriptor folder(open_path(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.open()) fail_write(path, errno);
    // Some network file systems cannot sync a folder and say EINVAL; there a rename is as durable as it can be.
    if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP) fail_write(path, errno);
}

}  // namespace lockstep
