// Sums over rows on a GPU: the bias gradient of convolutions, and the second half of batch norm's sums. One fixed
// order, whatever the grid.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// Floats that channel_sums needs as `partials`.
int64_t channel_partials(int64_t rows, int channels);
/// sums[c] = the sum of x [rows][channels] over its rows: blocks of 256 rows, in a block four chains of plain adds from
/// +0 (row mod 4), (0+1)+(2+3); blocks added in order to +0.
void channel_sums(int64_t rows, int channels, const float* x, float* partials, float* sums, cudaStream_t stream);

/// sums[c] = +0 + partials[0][c] + partials[1][c] + …, of [blocks][columns].
void add_row_blocks(int64_t blocks, int64_t columns, const float* partials, float* sums, cudaStream_t stream);

}  // namespace lockstep
