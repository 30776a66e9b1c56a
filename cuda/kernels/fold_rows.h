// Sums of shards' rows on a GPU, and their canonical tree.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// FoldProgram::Leaf as a kernel needs it: rows [begin, end), and the additions after it.
struct FoldLeaf {
    int32_t begin, end, adds;
};

/// out[c] = the sum of one root: of its `count` leaves each a chain of plain adds from +0 over its rows of x
/// [rows][columns], then the leaf's additions. `leaves` lies on the device.
void launch_fold_rows(const FoldLeaf* leaves, int count, int rows, int columns, const float* x, float* out,
                      cudaStream_t stream);

}  // namespace lockstep
