// Arithmetic 1 of everything but dense layers and convolutions (reference_gemm.hpp), norms (reference_norm.hpp) and the
// losses beside softmax cross entropy (reference_loss.hpp), as plain scalar loops: these functions *are* the
// definition, and they are the "scalar" instruction set. Every kernel of every target gives their bits, which its test
// compares with ==. What they share: fp32 rounded to nearest, subnormals kept, a product is fused with a sum only where
// std::fma says so, division and square root are IEEE's, sums run in the order written. Bits of NaNs are not promised.
//
// Signatures are those of the kernel tables (kernels.hpp says what the slices are).
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.hpp"
#include "backend/cpu/kernels.hpp"

namespace lockstep::reference {

/// y = x <= 0 ? +0 : x. A NaN stays (a vector maximum would drop it, on some machines).
void relu(int64_t n, const float* x, float* y);
/// dy = y > 0 ? dy : +0.
void relu_backward(int64_t n, const float* y, float* dy);
/// dst = left + right.
void add(int64_t n, const float* left, const float* right, float* dst);
/// x = factor * x: one product.
void scale(int64_t n, float factor, float* x);
/// |x| < limit; no NaN is.
bool all_below(int64_t n, const float* x, float limit);
/// Per column: plain adds from +0 over a shard's rows, then the fold program's additions.
void fold_rows(const FoldProgram& fold, int columns, int begin, int end, const float* x, std::span<float* const> out);

/// The first valid tap in (kh, kw) order, replaced by every strictly greater one: the first maximum wins.
void max_pool_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y, uint8_t* taps);
/// dx = a chain of plain adds from +0 over the windows that chose this input, in ascending (oh, ow) order.
void max_pool_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const uint8_t* taps,
                       const float* masked_by, float* dx);
/// Sum of the valid taps, divided once by their number. A kernel of up to 64 taps: plain adds from +0 in (kh, kw)
/// order. Larger: blocks of 256 taps of the kernel, in a block 4 chains (tap mod 4) over the valid taps, ((0+1)+(2+3)),
/// blocks added in order from +0.
void average_pool_forward(const PoolShape& shape, int64_t begin, int64_t end, const float* x, float* y);
/// dx = a chain of plain adds from +0 over the windows that hold this input, in ascending (oh, ow) order, of dy / taps.
void average_pool_backward(const PoolShape& shape, int64_t begin, int64_t end, const float* dy, const float* masked_by,
                           float* dx);

/// m = max z; e = exp_fixed(z - m); s = 16 chains of plain adds (class mod 16), folded i + (i+8), +4, +2, +1.
/// loss = log_fixed(s) - (z[label] - m); dlogits = e / s, and then minus 1 at the label.
void softmax_cross_entropy(int rows, int classes, const float* logits, const int32_t* labels, float* loss,
                           float* dlogits);
/// probabilities = e / s.
void softmax(int rows, int classes, const float* logits, float* probabilities);
/// y = exp_fixed(x); y = log_fixed(x).
void exponentials(int64_t n, const float* x, float* y);
void logarithms(int64_t n, const float* x, float* y);

/// y = bits >= threshold ? x * scale : +0; bits: element of the random stream at `position`.
void dropout_row(const DropoutMask& mask, int64_t position, int64_t first, int64_t count, const float* x, float* y);

/// g = G / divisor (skipped where divisor is 1: the same bits), then g = fma(l2, w, g) where l2 != 0: what update and
/// the norm both start from. In a block of 4,096 elements 16 fp64 chains (element mod 16) s = fma(g, g, s) from +0,
/// folded i + (i+8), +4, +2, +1.
void block_square_sums(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums);
/// After g: g = g * clip where clip_active; g = fma(weight_decay, w, g) where weight_decay != 0 (not adamw, lamb). Then
///   sgd       w = fma(-lr, g, w)
///   momentum  v = fma(momentum, v, g);  w = fma(-lr, v, w)
///   nesterov  v = fma(momentum, v, g);  w = fma(-lr, fma(momentum, v, g), w)
///   adam      m = fma(beta1, m, (1-beta1) * g);  v = fma(beta2, v, (1-beta2) * (g * g));
///             w = fma(-lr, (m / correction1) / (sqrt(v / correction2) + epsilon), w)
///   adamw     w = w * decay_factor, then adam
///   adagrad   s = fma(g, g, s);  w = fma(-lr, g / root(s), w); root(s) = sqrt(s) + epsilon, or sqrt(s + epsilon) where
///             epsilon_inside
///   rmsprop   s = fma(beta2, s, (1-beta2) * (g * g));  w = fma(-lr, g / root(s), w)
///   rmsprop with momentum: s likewise;  v = fma(momentum, v, lr * (g / root(s)));  w = w - v
///   lars      g = g * trust, then momentum
///   lamb      m, v as adam;  direction = fma(weight_decay, w, (m / correction1) / (sqrt(v / correction2) + epsilon)),
///             without the fma where weight_decay is 0; w stays
/// Slots in the order in which they are named here; only lamb has a direction.
void update(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
            float* direction);

}  // namespace lockstep::reference
