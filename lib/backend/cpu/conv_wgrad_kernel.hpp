// Weight gradient of a convolution over one shard: register tiles of gradient rows x output channels, x and dy read in
// place or, where their rows are long, from copies; and the sums over rows that are its bias gradient.
#pragma once

#include <cstdint>

#include "backend/cpu/conv_wgrad_plan.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

struct ConvWgradOperands {
    const float* x;        // of sample `first_sample`, at the group's first input channel
    const float* dy;       // of sample 0, at the group's first output channel
    int64_t samples;       // of the shard
    int64_t first_sample;  // samples before it are not read
    float* gradient;       // [gradient_rows][stride]
    int64_t stride;        // output channels of the group rounded up to whole vectors
    float* scratch;        // scratch_floats of this thread
};

struct ConvWgradKernels {
    int lanes = 0;
    /// Tiles that share a gradient: what threads take ranges of.
    int64_t (*tiles)(const ConvWgradPlan& plan) = nullptr;
    /// What `run` needs to copy long rows to.
    int64_t (*scratch_floats)(const ConvWgradPlan& plan) = nullptr;
    /// Tiles [begin, end), blocks [begin, end) of output rows: block 0 writes the gradient, the others add to it.
    void (*run)(const ConvWgradPlan& plan, const ConvWgradOperands& operands, IndexRange tiles,
                IndexRange blocks) = nullptr;
    /// Depthwise (one input and one output channel a group): gradient [taps][channels], channels on the lanes; all
    /// blocks.
    void (*depthwise)(const ConvWgradPlan& plan, const ConvWgradOperands& operands, int64_t channels,
                      IndexRange taps) = nullptr;
    /// Sums over rows of x [rows][channels] for `columns` (reference_channel_sums).
    void (*channel_sums)(int64_t rows, int64_t channels, IndexRange columns, const float* x, float* sums) = nullptr;
};

/// Empty for kScalar.
const ConvWgradKernels& conv_wgrad_kernels(Isa isa);

}  // namespace lockstep
