// Dropout on a GPU: a thread makes one Philox block, the random words of four neighbouring elements of a row.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/dropout_mask.hpp"

namespace lockstep {

/// y = word of (position of the row, element) >= threshold ? x * scale : +0, on `rows` rows. y may be x.
void launch_dropout(const DropoutMask& mask, int rows, int64_t elements, const int64_t* positions, const float* x,
                    float* y, cudaStream_t stream);

}  // namespace lockstep
