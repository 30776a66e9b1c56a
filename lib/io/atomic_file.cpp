#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "io/files.hpp"

namespace lockstep {

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), file_(-1) {
    if (path_.empty() || path_.back() == '/') fail(ErrorKind::kRuntime, "cannot write '{}': it names no file", path_);
    struct stat status {};
    if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        file_.reset(open_path(path_, O_WRONLY | O_CLOEXEC));
        if (!file_.open()) fail_write(path_, errno);
        return;
    }
    // Short and independent of the final name, which may already be as long as a name can be. A file left by a killed
    // process of the same number is stepped over, never overwritten.
    for (int attempt = 0; !file_.open(); ++attempt) {
        temporary_ = fmt::format("{}/.lockstep-tmp-{}-{}", folder_of(path_), ::getpid(), attempt);
        const int fd = open_path(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            file_.reset(fd);
        } else if (errno != EEXIST && errno != EINTR) {
            const int error = errno;
            temporary_.clear();
            fail_write(path_, error);
        }
    }
}

AtomicFile::~AtomicFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    if (const int error = write_all(file_.get(), bytes)) fail_write(path_, error);
}

void AtomicFile::commit() {
    if (temporary_.empty()) {  // not a file: nothing to sync or rename
        if (const int error = file_.close()) fail_write(path_, error);
        return;
    }
    if (::fsync(file_.get()) != 0) fail_write(path_, errno);
    if (const int error = file_.close()) fail_write(path_, error);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
    temporary_.clear();
    sync_folder(folder_of(path_));
}

}  // namespace lockstep
