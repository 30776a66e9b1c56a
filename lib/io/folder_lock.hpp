// A folder that one process at a time may write to. The lock is the system's (flock): it leaves no file behind and ends
// with the process, however that ends.
#pragma once

#include <string>

namespace lockstep {

class FolderLock {
  public:
    FolderLock() = default;
    ~FolderLock() { release(); }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;

    /// Takes the lock of a folder, once; false if another process keeps it for longer than a killed one needs to leave.
    /// True, without a lock, where the folder does not exist or its file system has no locks for folders (some network
    /// file systems).
    bool take(const std::string& folder);

  private:
    void release();
    int fd_ = -1;
};

}  // namespace lockstep
