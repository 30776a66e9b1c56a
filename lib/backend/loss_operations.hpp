// Losses beside the plain softmax cross entropy, and what turns outputs into predictions. One value a row; labels,
// targets and losses lie on the device. A null derivative is not computed.
#pragma once

#include <cstdint>

#include "backend/stream.hpp"

namespace lockstep {

class LossOperations {
  public:
    virtual ~LossOperations() = default;

    /// Softmax cross entropy against (1 - smoothing) at the label and smoothing / classes everywhere.
    virtual void smoothed_cross_entropy(Stream&, int rows, int classes, float smoothing, const float* logits,
                                        const int32_t* labels, float* loss, float* dlogits) = 0;
    /// One logit a row, label 0 or 1: loss = max(z, 0) - z * label + log(1 + exp(-|z|)); dlogit = sigmoid(z) - label.
    virtual void sigmoid_cross_entropy(Stream&, int rows, const float* logits, const int32_t* labels, float* loss,
                                       float* dlogits) = 0;
    /// y = 1 / (1 + exp(-x)).
    virtual void sigmoid(Stream&, int64_t n, const float* x, float* y) = 0;
    /// dx = dy * (y * (1 - y)), y as sigmoid gave it. dx may be dy.
    virtual void sigmoid_backward(Stream&, int64_t n, const float* y, const float* dy, float* dx) = 0;
    /// One prediction a row: loss = (p - t)^2, dp = 2 (p - t).
    virtual void squared_error(Stream&, int rows, const float* predictions, const float* targets, float* loss,
                               float* dpredictions) = 0;
};

}  // namespace lockstep
