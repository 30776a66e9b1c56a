// Memory of a device that the host cannot see: addresses in pages without access, which stand for memory elsewhere. A
// host that dereferences one ends at once.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>

#include "backend/backend.hpp"
#include "core/error.hpp"

namespace lockstep::test {

class SeparateMemory {
  public:
    explicit SeparateMemory(Backend& real) : real_(real) {}

    /// Reserves addresses for memory of the real backend.
    std::byte* add(std::size_t bytes) {
        const std::size_t length = bytes + kGuard;
        void* const address = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address == MAP_FAILED) throw std::bad_alloc();
        auto* const begin = static_cast<std::byte*>(address);
        blocks_[begin] = {real_.allocate(bytes), bytes, length};
        return begin;
    }
    void remove(std::byte* begin) {
        munmap(begin, blocks_.at(begin).length);
        blocks_.erase(begin);
    }
    /// Where the memory behind a device's address is; null stays null.
    template <class T>
    T* real(T* device) {
        if (device == nullptr) return nullptr;
        const auto* address = reinterpret_cast<const std::byte*>(device);
        const auto after = blocks_.upper_bound(const_cast<std::byte*>(address));
        const bool found =
            after != blocks_.begin() && address <= std::prev(after)->first + std::prev(after)->second.bytes;
        if (!found) fail(ErrorKind::kRuntime, "test: {} is no address of the device", static_cast<const void*>(device));
        auto& [begin, block] = *std::prev(after);
        return reinterpret_cast<T*>(block.memory->data() + (address - begin));
    }

  private:
    static constexpr std::size_t kGuard = 4096;
    struct Block {
        std::unique_ptr<Buffer> memory;
        std::size_t bytes = 0;
        std::size_t length = 0;
    };
    Backend& real_;
    std::map<std::byte*, Block> blocks_;
};

}  // namespace lockstep::test
