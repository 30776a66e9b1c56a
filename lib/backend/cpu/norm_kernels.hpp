// The kernels of batch norm and response normalisation of one instruction set: slices of the operations of
// norm_operations.hpp, for one thread. reference_norm.hpp defines what they compute.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/norm_operations.hpp"

namespace lockstep {

/// Part of an array [rows][stride]: the first `channels` of each of `rows` rows. The first row begins a block of a sum.
struct NormSlice {
    int64_t rows = 0;
    int stride = 1;
    int channels = 1;
};

struct NormKernels {
    // Add the sums of a slice, block by block, to totals of its channels. Pointers are at its first row and channel.
    void (*add_sums)(const NormSlice& slice, const float* x, float* sums);
    /// Squares of x - sums / count.
    void (*add_squares)(const NormSlice& slice, const float* x, const float* sums, float count, float* squares);
    void (*add_gradient_sums)(const NormSlice& slice, const float* x, const float* mean, const float* inverse,
                              const float* dy, const float* masked_by, float* xhat_sums, float* dy_sums);
    // Any rows.
    void (*batch_norm)(int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                       const float* gamma, const float* beta, float* y);
    void (*batch_norm_backward)(int64_t rows, int channels, int64_t count, const float* x, const float* statistics,
                                const float* gamma, const float* sums, const float* dy, const float* masked_by,
                                float* dx);
};
const NormKernels& norm_kernels(Isa isa);

struct LrnKernels {
    void (*lrn)(const LrnShape& shape, int64_t rows, const float* x, float* y);
    void (*lrn_backward)(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx);
};
const LrnKernels& lrn_kernels(Isa isa);

}  // namespace lockstep
