// Bias gradient of dense layers: plain sums of each shard's rows, added up by the canonical tree.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/kernels/gemm.h"

namespace lockstep {

/// db [columns] of one root: for each of the program's row ranges plain adds from +0 over dy [rows][columns] in order,
/// added up as the program says (GemmChains, with a whole shard in the place of a chain).
void dense_bias_gradient(int rows, int columns, const GemmChains& shards, const float* dy, float* db,
                         cudaStream_t stream);

}  // namespace lockstep
