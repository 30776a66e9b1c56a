#include "io/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace lockstep {

bool FolderLock::take(const std::string& folder) {
    using namespace std::chrono_literals;
    if (fd_ >= 0) return true;
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) return true;
    for (const auto end = std::chrono::steady_clock::now() + 3s; ::flock(fd_, LOCK_EX | LOCK_NB) != 0;) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return true;
        if (std::chrono::steady_clock::now() >= end) {
            release();
            return false;
        }
        std::this_thread::sleep_for(20ms);
    }
    return true;
}

void FolderLock::release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

}  // namespace lockstep
