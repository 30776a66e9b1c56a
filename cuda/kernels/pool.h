// Pooling on a GPU. A thread owns one output of one channel, or four of neighbouring channels, and walks its window in
// the order that defines the bits; neighbouring threads have neighbouring channels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/backend.hpp"

namespace lockstep {

/// Forward of `rows` samples. `taps` (max only) as Pool::forward says.
void launch_pool_forward(const PoolShape& shape, int rows, const float* x, float* y, uint8_t* taps,
                         cudaStream_t stream);
/// Backward of `rows` samples; `masked_by` may be null.
void launch_pool_backward(const PoolShape& shape, int rows, const float* dy, const uint8_t* taps,
                          const float* masked_by, float* dx, cudaStream_t stream);

}  // namespace lockstep
