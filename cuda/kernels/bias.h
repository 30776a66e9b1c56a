// What a product by the vendor's libraries is followed by: the bias and relu of its output, and sums of gradients over
// rows. One fixed order each, whatever the grid.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/cast.h"

namespace lockstep {

/// y [rows][channels] = product + bias, then relu if asked for (x <= 0 becomes +0, a NaN stays). `bias` may be null;
/// `product` may be y itself where its format is fp32.
void finish_product(NumberFormat format, int64_t rows, int channels, const void* product, const float* bias, bool relu,
                    float* y, cudaStream_t stream);

/// Floats that channel_sums needs as `partials`.
int64_t channel_partials(int64_t rows, int channels);
/// sums[c] = the sum of x [rows][channels] over its rows: blocks of 256 rows, in a block four chains of plain adds from
/// +0 (row mod 4), (0+1)+(2+3); blocks added in order to +0.
void channel_sums(int64_t rows, int channels, const float* x, float* partials, float* sums, cudaStream_t stream);

}  // namespace lockstep
