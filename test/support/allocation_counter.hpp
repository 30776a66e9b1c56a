// Counts the calls of operator new, by any thread, so that a test can claim "allocates nothing". It replaces the global
// operators: include it in exactly one source file of a test executable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace lockstep::test {

inline std::atomic<int64_t> allocations_of_process{0};

/// Allocations since it was made.
class AllocationCounter {
  public:
    int64_t count() const { return allocations_of_process.load() - before_; }

  private:
    int64_t before_ = allocations_of_process.load();
};

inline void* counted_allocation(std::size_t bytes, std::size_t alignment) {
    allocations_of_process.fetch_add(1, std::memory_order_relaxed);
    if (bytes == 0) bytes = 1;
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;  // what aligned_alloc asks for
    void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, whole);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace lockstep::test

void* operator new(std::size_t bytes) {
    return lockstep::test::counted_allocation(bytes, 1);
}
void* operator new[](std::size_t bytes) {
    return lockstep::test::counted_allocation(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return lockstep::test::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return lockstep::test::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
