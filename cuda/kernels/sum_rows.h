// A column's plain sum in the order of its rows. Each addition waits for the one before, but no load does: several are
// under way at once, or the chain would wait for memory at every row. Device code; included by .cu files.
#pragma once

#include <cstdint>

#include "cuda/device.h"

namespace lockstep {

/// +0 + from[0] + from[stride] + … + from[(rows - 1) * stride], of memory that the kernel does not write; kAhead rows
/// are loaded at once.
template <int kAhead = 16>
__device__ inline float sum_rows(const float* from, int64_t rows, int64_t stride) {
    float sum = 0.0F;
    for (; rows >= kAhead; rows -= kAhead, from += kAhead * stride) {
        float ahead[kAhead];
        LS_UNROLL for (int i = 0; i < kAhead; ++i) ahead[i] = __ldg(from + i * stride);
        LS_UNROLL for (int i = 0; i < kAhead; ++i) sum = sum + ahead[i];
    }
    for (; rows > 0; --rows, from += stride) sum = sum + __ldg(from);
    return sum;
}

}  // namespace lockstep
