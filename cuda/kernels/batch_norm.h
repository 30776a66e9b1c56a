// Batch norm on a GPU, in the order of addition and with the formulas that backend/cpu/reference_norm.hpp defines.
// Arrays x, y, dy, dx are [rows][channels]; moments, statistics, running values and sums [2][channels].
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// Floats that launch_batch_moments and launch_batch_norm_sums need as `partials`.
int64_t batch_norm_partials(int64_t rows, int channels);

void launch_batch_moments(int64_t rows, int channels, const float* x, float* partials, float* moments,
                          cudaStream_t stream);
/// `masked_by` may be null.
void launch_batch_norm_sums(int64_t rows, int channels, const float* x, const float* statistics, const float* dy,
                            const float* masked_by, float* partials, float* sums, cudaStream_t stream);

/// `into` may be `left` or `right`.
void launch_merge_moments(int channels, int64_t left_rows, int64_t right_rows, const float* left, const float* right,
                          float* into, cudaStream_t stream);
void launch_batch_statistics(int64_t rows, int channels, float epsilon, const float* moments, float* statistics,
                             cudaStream_t stream);
void launch_running_statistics(int channels, float epsilon, const float* running, float* statistics,
                               cudaStream_t stream);
void launch_update_running(int64_t rows, int channels, float momentum, float one_minus_momentum, bool unbiased,
                           const float* moments, float* running, cudaStream_t stream);

/// y may be x.
void launch_batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                       const float* gamma, const float* beta, float* y, cudaStream_t stream);
/// `masked_by` may be null; dx may be dy.
void launch_batch_norm_backward(int64_t rows, int channels, int64_t rows_of_sums, const float* x,
                                const float* statistics, const float* gamma, const float* sums, const float* dy,
                                const float* masked_by, float* dx, cudaStream_t stream);

}  // namespace lockstep
