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

// Null where there is no memory.
inline void* counted_allocation(std::size_t bytes, std::size_t alignment) noexcept {
    allocations_of_process.fetch_add(1, std::memory_order_relaxed);
    if (bytes == 0) bytes = 1;
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;  // what aligned_alloc asks for
    return alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, whole);
}

inline void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
    void* memory = counted_allocation(bytes, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

// Out of line: where only the operator delete around it is inlined, GCC takes free() for a mistake.
[[gnu::noinline]] inline void release(void* memory) noexcept {
    std::free(memory);
}

}  // namespace lockstep::test

// All forms, so that no library keeps one of its own and frees by another's.
void* operator new(std::size_t n) {
    return lockstep::test::counted_or_throw(n, 1);
}
void* operator new[](std::size_t n) {
    return lockstep::test::counted_or_throw(n, 1);
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
    return lockstep::test::counted_allocation(n, 1);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
    return lockstep::test::counted_allocation(n, 1);
}
void* operator new(std::size_t n, std::align_val_t a) {
    return lockstep::test::counted_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
    return lockstep::test::counted_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    return lockstep::test::counted_allocation(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    return lockstep::test::counted_allocation(n, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory) noexcept {
    lockstep::test::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    lockstep::test::release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    lockstep::test::release(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    lockstep::test::release(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    lockstep::test::release(memory);
}
