// The kernels of one instruction set, as tables of functions that work on a slice of an operation with one thread.
//
// A backend picks its tables by instruction set when it is made; how a slice is chosen (threads, shards) is the
// caller's business and decides no bit. The scalar entry of each table is the reference (reference.hpp), which defines
// the results of all others.
#pragma once

#include <cstdint>
#include <span>

#include "backend/arithmetic.hpp"
#include "backend/backend.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "backend/dropout_mask.hpp"

namespace lockstep {

struct ElementwiseKernels {
    void (*relu)(int64_t n, const float* x, float* y);
    void (*relu_backward)(int64_t n, const float* y, float* dy);
    void (*add)(int64_t n, const float* left, const float* right, float* dst);
    void (*scale)(int64_t n, float factor, float* x);
    bool (*all_below)(int64_t n, const float* x, float limit);
    /// Columns [begin, end) of x [rows][columns].
    void (*fold_rows)(const FoldProgram& fold, int columns, int begin, int end, const float* x,
                      std::span<float* const> out);
};
const ElementwiseKernels& elementwise_kernels(Isa isa);

/// Units are lines of the side that is written: forward, output line n * out_h + oh; backward, input line n * in.height
/// + ih.
struct PoolKernels {
    void (*max_forward)(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y, uint8_t* taps);
    void (*max_backward)(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const uint8_t* taps,
                         const float* masked_by, float* dx);
    void (*average_forward)(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y);
    void (*average_backward)(const PoolShape& shape, int64_t begin, int64_t end, const float* dy,
                             const float* masked_by, float* dx);
};
const PoolKernels& pool_kernels(Isa isa);

struct SoftmaxKernels {
    /// dlogits may be null.
    void (*cross_entropy)(int rows, int classes, const float* logits, const int32_t* labels, float* loss,
                          float* dlogits);
    void (*smoothed_cross_entropy)(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                                   float* loss, float* dlogits);
    void (*probabilities)(int rows, int classes, const float* logits, float* probabilities);
    // y = exp_fixed(x) and log_fixed(x): what all losses are made of, for the test to sweep.
    void (*exponentials)(int64_t n, const float* x, float* y);
    void (*logarithms)(int64_t n, const float* x, float* y);
};
const SoftmaxKernels& softmax_kernels(Isa isa);

struct LossKernels {
    void (*sigmoid_cross_entropy)(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits);
    void (*sigmoid)(int64_t n, const float* x, float* y);
};
const LossKernels& loss_kernels(Isa isa);

struct DropoutKernels {
    /// Elements [first, first + count) of one row; x and y point at element `first`, a multiple of 4.
    void (*row)(const DropoutMask& mask, int64_t position, int64_t first, int64_t count, const float* x, float* y);
};
const DropoutKernels& dropout_kernels(Isa isa);

struct UpdateKernels {
    /// The slice starts at a block border of its tensor; sums[i] is the sum of its i-th block.
    void (*block_square_sums)(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums);
    void (*update)(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                   float* direction);
};
const UpdateKernels& update_kernels(Isa isa);

}  // namespace lockstep
