// What normalises: batch norm over the last dimension, and local response normalisation across channels. x, y, dy are
// [rows][channels], a row being one position of one sample. backend/cpu/reference_norm.hpp defines the sums and the
// formulas in full.
#pragma once

#include <cstdint>

#include "backend/stream.hpp"

namespace lockstep {

/// Beyond it, and below the number of channels, a row's neighbours do not fit in the fast memory of a GPU.
inline constexpr int kMostLrnRadius = 3000;

/// y = x * d^-beta, d = bias + alpha * (sum of x^2 over the channels at most `radius` away). The radius is at most
/// kMostLrnRadius, or the channels are fewer.
struct LrnShape {
    int channels = 1;
    int radius = 4;
    float bias = 1, alpha = 1e-3f / 9, beta = 0.75f;
    bool operator==(const LrnShape&) const = default;
};

class NormOperations {
  public:
    virtual ~NormOperations() = default;

    /// Memory for the sums of up to so many rows of so many channels: batch_moments and batch_norm_sums take none then.
    virtual void plan_batch_norm(int64_t rows, int channels) = 0;
    // Moments of rows: [2][channels], sum of x, then sum of (x - mean)^2 with mean = sum / rows (a second pass).
    virtual void batch_moments(Stream&, int64_t rows, int channels, const float* x, float* moments) = 0;
    /// Moments of left and right rows (both > 0) together, left before right as in the canonical tree. `into` may be
    /// either.
    virtual void merge_moments(Stream&, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                               const float* right, float* into) = 0;
    /// statistics [2][channels]: mean = sum / rows; 1 / sqrt(sum of squares / rows + epsilon).
    virtual void batch_statistics(Stream&, int64_t rows, int channels, float epsilon, const float* moments,
                                  float* statistics) = 0;
    /// The same of running values: mean, 1 / sqrt(variance + epsilon). running [2][channels]: mean, variance.
    virtual void running_statistics(Stream&, int channels, float epsilon, const float* running, float* statistics) = 0;
    /// running = fma(momentum, running, (1 - momentum) * batch); the variance over rows, or rows - 1 where `unbiased`
    /// and rows > 1.
    virtual void update_running(Stream&, int64_t rows, int channels, float momentum, float one_minus_momentum,
                                bool unbiased, const float* moments, float* running) = 0;

    /// y = fma(gamma, (x - mean) * inverse, beta); then relu, if asked. gamma, beta [channels].
    virtual void batch_norm(Stream&, int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                            const float* gamma, const float* beta, float* y) = 0;
    /// sums [2][channels] over rows: dy * xhat (gamma's gradient), then dy (beta's). `masked_by` (or null): y of a
    /// relu; where it is not > 0, dy counts as +0.
    virtual void batch_norm_sums(Stream&, int64_t rows, int channels, const float* x, const float* statistics,
                                 const float* dy, const float* masked_by, float* sums) = 0;
    /// dx = (gamma * inverse) * fma(-xhat, sums[0] / count, dy - sums[1] / count); `count`: rows behind the statistics
    /// and the sums. dx may be dy.
    virtual void batch_norm_backward(Stream&, int64_t rows, int channels, int64_t count, const float* x,
                                     const float* statistics, const float* gamma, const float* sums, const float* dy,
                                     const float* masked_by, float* dx) = 0;

    virtual void lrn(Stream&, const LrnShape& shape, int64_t rows, const float* x, float* y) = 0;
    /// dx of the x that gave y. dx must not be dy.
    virtual void lrn_backward(Stream&, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                              float* dx) = 0;
};

}  // namespace lockstep
