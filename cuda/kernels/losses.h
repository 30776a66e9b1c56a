// Losses of one number a row on a GPU, and the sigmoid, with the formulas that backend/cpu/reference_loss.hpp defines.
// A null derivative is not computed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// dlogits may be the logits.
void launch_sigmoid_cross_entropy(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits,
                                  cudaStream_t stream);
/// y may be x.
void launch_sigmoid(int64_t n, const float* x, float* y, cudaStream_t stream);
/// dx = dy * (y * (1 - y)); dx may be dy.
void launch_sigmoid_backward(int64_t n, const float* y, const float* dy, float* dx, cudaStream_t stream);
/// dpredictions may be the predictions.
void launch_squared_error(int rows, const float* predictions, const float* targets, float* loss, float* dpredictions,
                          cudaStream_t stream);

}  // namespace lockstep
