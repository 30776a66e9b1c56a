// LineFile of files.hpp: each line is one write, so that a reader never sees a part of one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"
#include "io/descriptor.hpp"
#include "io/files.hpp"

namespace lockstep {

LineFile::LineFile(const std::string& path, int64_t keep_bytes) : path_(path), size_(keep_bytes) {
    Descriptor file(open_path(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file.open()) fail_write(path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail_write(path, errno);
    if (S_ISREG(status.st_mode)) {  // a device or a pipe has nothing to cut off
        if (status.st_size < keep_bytes) {
            fail(ErrorKind::kData, "{} holds {} bytes where {} were written before: it was cut off; restore it", path,
                 int64_t{status.st_size}, keep_bytes);
        }
        if (status.st_size > keep_bytes && ::ftruncate(file.get(), keep_bytes) != 0) fail_write(path, errno);
    }
    fd_ = file.release();
}

LineFile::~LineFile() {
    if (fd_ >= 0) ::close(fd_);
}

void LineFile::append(const std::string& line) {
    const std::string whole = line + '\n';
    if (const int error = write_all(fd_, std::as_bytes(std::span(whole)))) {
        // The part of a line that still fitted is taken back; where that fails, too, the first reason is the one to
        // tell.
        [[maybe_unused]] const int ignored = ::ftruncate(fd_, size_);
        fail_write(path_, error);
    }
    size_ += static_cast<int64_t>(whole.size());
}

int64_t LineFile::size() const {
    return size_;
}

}  // namespace lockstep
