// What a product by the vendor's libraries is followed by: the bias and relu of its output.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/cast.h"

namespace lockstep {

/// y [rows][channels] = product + bias, then relu if asked for (x <= 0 becomes +0, a NaN stays). `bias` may be null;
/// `product` may be y itself where its format is fp32.
void finish_product(NumberFormat format, int64_t rows, int channels, const void* product, const float* bias, bool relu,
                    float* y, cudaStream_t stream);

}  // namespace lockstep
