// Relu, additions, factors and reordered columns on a GPU. Element by element, so that order cannot matter.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// y = x <= 0 ? +0 : x; a NaN stays. y may be x.
void launch_relu(int64_t n, const float* x, float* y, cudaStream_t stream);
/// dy = y > 0 ? dy : +0, in place.
void launch_relu_backward(int64_t n, const float* y, float* dy, cudaStream_t stream);
/// dst = left + right; dst may be either.
void launch_add(int64_t n, const float* left, const float* right, float* dst, cudaStream_t stream);
/// x = factor * x, in place.
void launch_scale(int64_t n, float factor, float* x, cudaStream_t stream);
/// to[r][j] = from[r][columns[j]], rows of `width` elements.
void launch_gather_columns(int64_t rows, int width, const int32_t* columns, const float* from, float* to,
                           cudaStream_t stream);

}  // namespace lockstep
