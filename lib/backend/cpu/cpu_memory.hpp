// Memory of the CPU backend: zeroed, 64-byte aligned, on huge pages where it is large. Every page is touched when it is
// made: a page first met inside a training step costs that step a fault, and 4 KiB pages cost the update half its
// speed.
#pragma once

#include <cstddef>

namespace lockstep {

class CpuMemory {
  public:
    CpuMemory() = default;
    /// From 2 MiB on: aligned to 2 MiB and advised to be huge pages. Throws kRuntime where the machine has no such
    /// amount.
    explicit CpuMemory(std::size_t bytes);
    ~CpuMemory();
    CpuMemory(CpuMemory&& other) noexcept;
    CpuMemory& operator=(CpuMemory&& other) noexcept;
    CpuMemory(const CpuMemory&) = delete;
    CpuMemory& operator=(const CpuMemory&) = delete;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace lockstep
