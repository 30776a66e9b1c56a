// The two operations that give the host a number: whether a gradient is finite, and its sum of squares. The host waits
// for both, so one scratch serves all streams.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

class GradientChecks {
  public:
    explicit GradientChecks(CudaContext& context);
    bool all_finite(cudaStream_t stream, int64_t n, const float* x);
    double square_sum(cudaStream_t stream, int64_t n, const float* gradient, const float* w, float divisor, float l2);

  private:
    std::unique_ptr<Buffer> device_, host_;  // sums of blocks
    std::unique_ptr<Buffer> found_;
    uint32_t mark_ = 0;  // what this check writes to found_: no earlier one did, so that nothing need be cleared
};

}  // namespace lockstep
