// The operations of the CPU backend that normalise, that turn outputs into losses and that move features. What decides
// no bit is decided here: how an operation is cut among threads.
#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/norm_kernels.hpp"

namespace lockstep {

class CpuOperations : public Backend {
  public:
    void plan_batch_norm(int64_t, int) override {}  // block_sums_ serve all
    void batch_moments(Stream& stream, int64_t rows, int channels, const float* x, float* moments) override;
    void merge_moments(Stream& stream, int channels, int64_t left_rows, int64_t right_rows, const float* left,
                       const float* right, float* into) override;
    void batch_statistics(Stream& stream, int64_t rows, int channels, float epsilon, const float* moments,
                          float* statistics) override;
    void running_statistics(Stream& stream, int channels, float epsilon, const float* running,
                            float* statistics) override;
    void update_running(Stream& stream, int64_t rows, int channels, float momentum, float one_minus_momentum,
                        bool unbiased, const float* moments, float* running) override;
    void batch_norm(Stream& stream, int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                    const float* gamma, const float* beta, float* y) override;
    void batch_norm_sums(Stream& stream, int64_t rows, int channels, const float* x, const float* statistics,
                         const float* dy, const float* masked_by, float* sums) override;
    void batch_norm_backward(Stream& stream, int64_t rows, int channels, int64_t count, const float* x,
                             const float* statistics, const float* gamma, const float* sums, const float* dy,
                             const float* masked_by, float* dx) override;
    void lrn(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, float* y) override;
    void lrn_backward(Stream& stream, const LrnShape& shape, int64_t rows, const float* x, const float* dy,
                      float* dx) override;

    void smoothed_cross_entropy(Stream& stream, int rows, int classes, float smoothing, const float* logits,
                                const int32_t* labels, float* loss, float* dlogits) override;
    void sigmoid_cross_entropy(Stream& stream, int rows, const float* logits, const int32_t* labels, float* loss,
                               float* dlogits) override;
    void sigmoid(Stream& stream, int64_t n, const float* x, float* y) override;
    void sigmoid_backward(Stream& stream, int64_t n, const float* y, const float* dy, float* dx) override;
    void squared_error(Stream& stream, int rows, const float* predictions, const float* targets, float* loss,
                       float* dpredictions) override;

    std::unique_ptr<Expand> plan_expand(int in_columns, std::span<const ExpandColumn> columns) override;
    void copy_part(Stream& stream, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                   RowPart to_part) override;
    void fill(Stream& stream, int64_t n, float value, float* x) override;

  protected:
    CpuOperations(Isa isa, int threads);
    CpuContext& context() { return context_; }
    const CpuContext& context() const { return context_; }

  private:
    CpuContext context_;
    const NormKernels& norm_;
    const LrnKernels& lrn_;
    const SoftmaxKernels& softmax_;
    const LossKernels& loss_;
    std::vector<float> block_sums_;  // of blocks of rows, on the main stream
};

}  // namespace lockstep
