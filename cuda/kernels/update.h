// The fused update of one tensor on a GPU: one pass over gradient, weights and slots.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/update_params.hpp"

namespace lockstep {

/// Formulas: backend/cpu/reference.hpp. Slots and a direction that the optimizer does not have may be null.
void launch_update(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                   float* direction, cudaStream_t stream);

}  // namespace lockstep
