// What the host reads of device memory: the memory itself where the host sees it, else a copy in host memory.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/backend.hpp"

namespace lockstep {

class HostView {
  public:
    explicit HostView(Backend& backend) : backend_(backend) {}

    /// `count` values as all that is queued on the main stream leaves them; valid until the next call.
    template <class T>
    const T* read(const T* device, std::size_t count) {
        return static_cast<const T*>(read_bytes(device, count * sizeof(T)));
    }

  private:
    const void* read_bytes(const void* device, std::size_t bytes);

    Backend& backend_;
    std::unique_ptr<Buffer> copy_;  // as large as the largest read; none where the host sees the device's memory
};

/// Device memory that grows with what is asked of it; what it held is lost then.
class DeviceScratch {
  public:
    explicit DeviceScratch(Backend& backend) : backend_(backend) {}
    template <class T>
    T* at_least(std::size_t count) {
        return static_cast<T*>(bytes(count * sizeof(T)));
    }

  private:
    void* bytes(std::size_t count);

    Backend& backend_;
    std::unique_ptr<Buffer> memory_;
};

}  // namespace lockstep
