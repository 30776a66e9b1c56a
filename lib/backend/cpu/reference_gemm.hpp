// The definition of dense layers and convolutions: plain loops that say which products are added in which order. Every
// kernel must give these bytes.
//
// A sum over an ordered index is cut at fixed index positions into blocks. Each block is one chain of fused
// multiply-adds that starts at +0 and visits its existing terms in order; total = +0, then total = total + block for
// each block in order. Then + bias, then relu. (One chain for everything has up to 20 times the error in long sums;
// blocks cost nothing.) The index is
//   dense forward           the input feature
//   dense data gradient     the output feature
//   dense weight gradient   the sample within its shard; here the first block is the total's start, taken bare
//   convolution forward     (kh, kw, c_in), c_in fastest, of the output's group; taps outside the image are no terms
//   conv data gradient      (KH-1-kh, KW-1-kw, c_out): ascending output positions; taps on stride holes are no terms
//   conv weight gradient    (sample, oh, ow) of a shard; a block is ceil(256/OW) whole output rows
// The `chain` parameters exist for tests that show another block length to be other bits.
#pragma once

#include <span>

#include "backend/backend.hpp"
#include "backend/cpu/kernels.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

inline constexpr int kChainTerms = 512;      // of a sum over features or (kh, kw, channel), or over samples
inline constexpr int kChainPositions = 256;  // at least, of a sum over output positions; and rows of a sum over rows

/// x <= 0 becomes +0; NaN stays (a vector max would drop it on one kind of CPU and not on another).
inline float relu_of(float x) {
    return x <= 0 ? 0.0F : x;
}

/// Output rows in one block of a convolution's weight gradient.
inline int conv_rows_per_block(int out_w, int positions = kChainPositions) {
    return (positions + out_w - 1) / out_w;
}

/// y [rows][out] = x [rows][in] W^T + bias; `bias` may be null. w [out][in].
void reference_dense_forward(int rows, int in, int out, const float* x, const float* w, const float* bias, bool relu,
                             float* y, int chain = kChainTerms);

/// dx [rows][in] = dy [rows][out] W.
void reference_dense_backward_data(int rows, int in, int out, const float* dy, const float* w, float* dx,
                                   int chain = kChainTerms);

/// Rows `outputs` of dW [out][in] of every shard, added by the fold program: root i to dw[i].
void reference_dense_weight_gradient(const FoldProgram& fold, int in, int out, IndexRange outputs, const float* x,
                                     const float* dy, std::span<float* const> dw, int chain = kChainTerms);

/// db [out]: plain adds from +0 over each shard's samples, added by the fold program.
void reference_dense_bias_gradient(const FoldProgram& fold, int out, IndexRange outputs, const float* dy,
                                   std::span<float* const> db);

/// y [rows][OH][OW][out]; w [out][in/groups][KH][KW]; `bias` may be null.
void reference_conv_forward(const ConvShape& shape, int rows, const float* x, const float* w, const float* bias,
                            bool relu, float* y, int chain = kChainTerms);

/// dx [rows][H][W][in]: all of it is written.
void reference_conv_backward_data(const ConvShape& shape, int rows, const float* dy, const float* w, float* dx,
                                  int chain = kChainTerms);

/// dW of one shard of `rows` samples, for output channels `outputs`, in W's order.
void reference_conv_weight_gradient(const ConvShape& shape, int rows, IndexRange outputs, const float* x,
                                    const float* dy, float* dw, int positions = kChainPositions);

/// Per channel, the sum of x [rows][channels]: blocks of 256 rows, in a block four chains of plain adds from +0 (row
/// mod 4), (0+1)+(2+3); blocks added in order to +0. The bias gradient of a convolution, over a shard's output
/// positions.
void reference_channel_sums(int64_t rows, int channels, const float* x, float* sums);

}  // namespace lockstep
