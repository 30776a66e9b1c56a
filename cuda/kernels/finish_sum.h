// What follows the sum of a dense layer or a convolution, in whichever kernel that ends: the bias, then relu. Device
// code; included by .cu files.
#pragma once

#include "cuda/device.h"

namespace lockstep {

/// Sum + bias, if there is one, then relu, if asked for: x <= 0 becomes +0, a NaN stays.
__device__ __forceinline__ float finish_sum(float sum, bool has_bias, float bias, bool relu) {
    if (has_bias) sum = sum + bias;
    return relu && sum <= 0.0F ? 0.0F : sum;
}

/// The same with the bias of a channel; null: none.
__device__ __forceinline__ float finish_sum(float sum, const float* bias, int channel, bool relu) {
    return finish_sum(sum, bias != nullptr, bias != nullptr ? __ldg(bias + channel) : 0.0F, relu);
}

}  // namespace lockstep
