// Counts of elements as launches need them. Host code; included by .cu files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

inline std::size_t count(int64_t n) {
    return static_cast<std::size_t>(n);
}

inline int64_t ceil_div(int64_t n, int64_t d) {
    return (n + d - 1) / d;
}

/// Whether rows of `elements` floats may be read and written as quads.
inline bool in_quads(const void* memory, int elements) {
    return elements % 4 == 0 && reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
}

}  // namespace lockstep
