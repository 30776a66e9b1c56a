// How an operation without a plan is cut among the threads of a stream. Slices decide no bit, so work too small to be
// worth waking threads for stays on one.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_context.hpp"

namespace lockstep {

/// Elements below which a second thread costs more than it saves.
inline constexpr int64_t kElementsWorthThreads = 32768;
/// Floats in a cache line: borders between threads.
inline constexpr int64_t kLineFloats = 16;

/// body(begin, end) on a slice of [0, n) a thread, borders at multiples of `grain`; on one thread where `worth` is
/// false.
template <class Body>
void for_slices(CpuStream& stream, int64_t n, int64_t grain, bool worth, const Body& body) {
    if (!worth || stream.parts() == 1) {
        if (n > 0) body(int64_t{0}, n);
        return;
    }
    stream.parallel([&](int part, int parts) {
        const IndexRange range = part_of(n, part, parts, grain);
        if (range.begin < range.end) body(range.begin, range.end);
    });
}

}  // namespace lockstep
