// The few calls by which AddressSanitizer learns of memory and stacks that it did not make; nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::emulation {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
inline void poison(const void* p, std::size_t bytes) {
    __asan_poison_memory_region(p, bytes);
}
inline void unpoison(const void* p, std::size_t bytes) {
    __asan_unpoison_memory_region(p, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif

}  // namespace lockstep::emulation
