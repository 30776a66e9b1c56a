// A file descriptor with an owner, and the two things done with it that must not stop half way. Private to lib/io.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace lockstep {

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    bool open() const { return fd_ >= 0; }
    int get() const { return fd_; }
    void reset(int fd) {
        close();
        fd_ = fd;
    }
    int release() { return std::exchange(fd_, -1); }
    int close();  // 0 or errno: network file systems report a full disk only here

  private:
    int fd_;
};

/// open(2); EINVAL for a path with a zero in it, of which the system would see the part before.
int open_path(const std::string& path, int flags, unsigned mode = 0);

std::string system_reason(int error);  // "No space left on device"

/// All bytes, whatever number of writes it takes; 0 or errno.
int write_all(int fd, std::span<const std::byte> bytes);

/// The folder a path lies in: "." for a bare name.
std::string folder_of(const std::string& path);

/// Throws kRuntime: "cannot write PATH: REASON …".
[[noreturn]] void fail_write(const std::string& path, int error);

}  // namespace lockstep
