// What a step's check and norm read of a gradient, on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// Writes `mark` to *found if any of n values is infinite or not a number. Nothing else writes *found meanwhile.
void launch_find_nonfinite(int64_t n, const float* x, uint32_t mark, uint32_t* found, cudaStream_t stream);

/// sums[i] = the sum of squares of g = fma(l2, w, gradient / divisor) over elements [4096 i, 4096 (i+1)): 16 fp64
/// chains (element mod 16) s = fma(g, g, s) from +0, folded i + (i+8), +4, +2, +1.
void launch_block_square_sums(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums,
                              cudaStream_t stream);

}  // namespace lockstep
