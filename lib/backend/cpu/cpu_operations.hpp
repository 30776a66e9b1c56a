// The operations of the CPU backend that normalise, that turn outputs into losses and that move features. What decides
// no bit is decided here: how an operation is cut among threads.
#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/norm_kernels.hpp"

namespace lockstep {

class CpuOperations : public Backend {
  public:
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

  protected:
    CpuOperations(Isa isa, int threads);
    CpuContext& context() { return context_; }
    const CpuContext& context() const { return context_; }

  private:
    CpuContext context_;
    const NormKernels& norm_;
    std::vector<float> block_sums_;  // of blocks of rows, on the main stream
};

}  // namespace lockstep
