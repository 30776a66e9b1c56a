// Local response normalisation across channels on a GPU, with the formulas that backend/cpu/reference_norm.hpp defines.
// Arrays are [rows][channels].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/norm_operations.hpp"

namespace lockstep {

/// Beyond it, and below the number of channels, a row's neighbours do not fit in the shared memory of a block.
inline constexpr int kMostLrnRadius = 3000;

void launch_lrn(const LrnShape& shape, int64_t rows, const float* x, float* y, cudaStream_t stream);
/// dx must not be x or dy; the radius at most kMostLrnRadius, or the channels fewer.
void launch_lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx,
                         cudaStream_t stream);

}  // namespace lockstep
