// Depthwise convolution (one input and one output channel a group), forward and data gradient: channels on the lanes,
// the rows and their taps from the plan of one group (gemm_plan.hpp).
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/cpu/gemm_kernel.hpp"
#include "backend/cpu/gemm_plan.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

struct DepthwiseKernels {
    /// w: [k][channels], k as the plan counts it. Tiles [begin, end), all channels.
    void (*run)(const GemmPlan& plan, int64_t channels, const float* a, const float* w, const GemmOutput& out,
                IndexRange tiles) = nullptr;
};

/// Empty for kScalar.
const DepthwiseKernels& depthwise_kernels(Isa isa);

}  // namespace lockstep
