// Local response normalisation across channels on a GPU, with the formulas that backend/cpu/reference_norm.hpp defines.
// Arrays are [rows][channels].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/norm_operations.hpp"

namespace lockstep {

void launch_lrn(const LrnShape& shape, int64_t rows, const float* x, float* y, cudaStream_t stream);
/// dx must not be x or dy.
void launch_lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx,
                         cudaStream_t stream);

}  // namespace lockstep
