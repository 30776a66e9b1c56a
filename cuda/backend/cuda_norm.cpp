// Batch norm and response normalisation of the GPU backend.
#include "cuda/backend/cuda_backend.hpp"
#include "cuda/backend/stream_scratch.hpp"
#include "cuda/kernels/batch_norm.h"
#include "cuda/kernels/lrn.h"

namespace lockstep {

void CudaBackend::plan_batch_norm(int64_t rows, int channels) {
    StreamScratch::of(context_).reserve(batch_norm_partials(rows, channels));
}

void CudaBackend::batch_moments(Stream& stream, int64_t rows, int channels, const float* x, float* moments) {
    const NvtxRange range("batch norm");
    float* const partials = scratch(stream, batch_norm_partials(rows, channels));
    launch_batch_moments(rows, channels, x, partials, moments, cuda_stream(stream));
}

void CudaBackend::merge_moments(Stream& stream, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                                const float* right, float* into) {
    launch_merge_moments(channels, left_rows, right_rows, left, right, into, cuda_stream(stream));
}

void CudaBackend::batch_statistics(Stream& stream, int64_t rows, int channels, float epsilon, const float* moments,
                                   float* statistics) {
    launch_batch_statistics(rows, channels, epsilon, moments, statistics, cuda_stream(stream));
}

void CudaBackend::running_statistics(Stream& stream, int channels, float epsilon, const float* running,
                                     float* statistics) {
    launch_running_statistics(channels, epsilon, running, statistics, cuda_stream(stream));
}

void CudaBackend::update_running(Stream& stream, int64_t rows, int channels, float momentum, float one_minus_momentum,
                                 bool unbiased, const float* moments, float* running) {
    launch_update_running(rows, channels, momentum, one_minus_momentum, unbiased, moments, running,
                          cuda_stream(stream));
}

void CudaBackend::batch_norm(Stream& stream, int64_t rows, int channels, bool relu, const float* x,
                             const float* statistics, const float* gamma, const float* beta, float* y) {
    const NvtxRange range("batch norm");
    launch_batch_norm(rows, channels, relu, x, statistics, gamma, beta, y, cuda_stream(stream));
}

void CudaBackend::batch_norm_sums(Stream& stream, int64_t rows, int channels, const float* x, const float* statistics,
                                  const float* dy, const float* masked_by, float* sums) {
    const NvtxRange range("batch norm");
    float* const partials = scratch(stream, batch_norm_partials(rows, channels));
    launch_batch_norm_sums(rows, channels, x, statistics, dy, masked_by, partials, sums, cuda_stream(stream));
}

void CudaBackend::batch_norm_backward(Stream& stream, int64_t rows, int channels, int64_t count, const float* x,
                                      const float* statistics, const float* gamma, const float* sums, const float* dy,
                                      const float* masked_by, float* dx) {
    const NvtxRange range("batch norm");
    launch_batch_norm_backward(rows, channels, count, x, statistics, gamma, sums, dy, masked_by, dx,
                               cuda_stream(stream));
}

void CudaBackend::lrn(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, float* y) {
    launch_lrn(shape, rows, x, y, cuda_stream(stream));
}

void CudaBackend::lrn_backward(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                               float* dx) {
    launch_lrn_backward(shape, rows, x, dy, dx, cuda_stream(stream));
}

}  // namespace lockstep
