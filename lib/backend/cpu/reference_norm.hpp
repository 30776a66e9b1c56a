// The definition of batch norm and local response normalisation: plain loops, and what the "scalar" instruction set
// runs. Every kernel of every target gives these bytes.
//
// Sums over rows are cut into blocks of 256 rows. A block has 4 chains from +0 (row mod 4), added as (0+1)+(2+3);
// blocks are added in order to a total that begins at +0. Counts of rows are rounded to fp32 once, before they divide.
//   moments        sum of x: plain adds.  mean = sum / rows.  squares: chains s = fma(d, d, s), d = x - mean
//   merge          d = right sum / right rows - left sum / left rows;  f = (l * r) / (l + r) of the two numbers of
//   rows,
//                  three operations in fp64, rounded once;  sum = left sum + right sum;
//                  squares = fma(d * d, f, left squares + right squares)
//                  (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for sample variances, 1979)
//   statistics     mean = sum / rows;  inverse = 1 / sqrt(squares / rows + epsilon)
//   running        running = fma(momentum, running, (1 - momentum) * batch), of sum / rows and of squares / rows, or
//                  squares / (rows - 1) where unbiased and rows > 1
//   forward        xhat = (x - mean) * inverse;  y = fma(gamma, xhat, beta), then relu
//   sums           g = dy, or +0 where a relu's y is not > 0;  chains s = fma(g, xhat, s), and plain adds of g
//   backward       dx = (gamma * inverse) * fma(-xhat, k, g - b), k = (sum of g xhat) / count, b = (sum of g) / count
// (Ioffe, Szegedy: Batch Normalization, 2015.)
#pragma once

#include <cstdint>

#include "backend/cpu/norm_kernels.hpp"
#include "backend/norm_operations.hpp"

namespace lockstep::reference {

/// Rows in a block of a sum over rows.
inline constexpr int64_t kSumBlockRows = 256;

// Sums of a slice (norm_kernels.hpp), added to totals.
void add_sums(const NormSlice& slice, const float* x, float* sums);
void add_squares(const NormSlice& slice, const float* x, const float* sums, float count, float* squares);
void add_gradient_sums(const NormSlice& slice, const float* x, const float* mean, const float* inverse, const float* dy,
                       const float* masked_by, float* xhat_sums, float* dy_sums);

void batch_moments(int64_t rows, int channels, const float* x, float* moments);
void merge_moments(int channels, int64_t left_rows, int64_t right_rows, const float* left, const float* right,
                   float* into);
void batch_statistics(int64_t rows, int channels, float epsilon, const float* moments, float* statistics);
void running_statistics(int channels, float epsilon, const float* running, float* statistics);
void update_running(int64_t rows, int channels, float momentum, float one_minus_momentum, bool unbiased,
                    const float* moments, float* running);
void batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* statistics, const float* gamma,
                const float* beta, float* y);
void batch_norm_sums(int64_t rows, int channels, const float* x, const float* statistics, const float* dy,
                     const float* masked_by, float* sums);
void batch_norm_backward(int64_t rows, int channels, int64_t count, const float* x, const float* statistics,
                         const float* gamma, const float* sums, const float* dy, const float* masked_by, float* dx);

/// s = chain fma(x, x, s) from +0 over the channels at most `radius` away, ascending;  d = fma(alpha, s, bias);
/// p = exp_fixed(-beta * log_fixed(d));  y = x * p.
void lrn(const LrnShape& shape, int64_t rows, const float* x, float* y);
/// t = (dy * x) * (p / d) of every channel;  s = plain adds of t from +0 over the channels at most `radius` away,
/// ascending;  dx = fma(-(k * x), s, dy * p), k = (2 * alpha) * beta.
void lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx);

}  // namespace lockstep::reference
