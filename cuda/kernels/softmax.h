// Softmax and its cross entropy on a GPU: sixteen lanes a row, each one chain of the row's sum.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep {

/// loss[r] = log(s) - (z[label] - m); dlogits = e / s, minus 1 at the label. dlogits may be null, or logits.
void launch_softmax_cross_entropy(int rows, int classes, const float* logits, const int32_t* labels, float* loss,
                                  float* dlogits, cudaStream_t stream);
/// Against 1 - smoothing at the label and off = smoothing / classes everywhere: t = the sum of z - m in the order of s;
/// loss = log(s) - fma(1 - smoothing, z[label] - m, off * t); dlogits = e / s - off, minus 1 - smoothing at the label.
void launch_smoothed_cross_entropy(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                                   float* loss, float* dlogits, cudaStream_t stream);
/// probabilities = e / s.
void launch_softmax(int rows, int classes, const float* logits, float* probabilities, cudaStream_t stream);

}  // namespace lockstep
