// The number formats of operands, one overload each, so that a kernel is written once. Device code: for .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace lockstep {

/// x in the format that the second argument (null) points to, rounded to nearest even.
__device__ inline float convert(float x, const float*) {
    return x;
}
__device__ inline __nv_bfloat16 convert(float x, const __nv_bfloat16*) {
    return __float2bfloat16_rn(x);
}
__device__ inline __half convert(float x, const __half*) {
    return __float2half_rn(x);
}

/// x exactly.
__device__ inline float to_float(float x) {
    return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
__device__ inline float to_float(__half x) {
    return __half2float(x);
}

}  // namespace lockstep
