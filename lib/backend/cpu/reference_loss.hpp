// The definition of the losses beside the plain softmax cross entropy (reference.hpp): plain loops, and what the
// "scalar" instruction set runs. exp and log are those of core/fixed_math.hpp.
#pragma once

#include <cstdint>

namespace lockstep::reference {

/// m = max z; e = exp(z - m); s = sum of e, t = sum of (z - m), each of 16 chains of plain adds (class mod 16) folded i
/// + (i+8), +4, +2, +1. off = smoothing / classes, on = 1 - smoothing. loss = log(s) - fma(on, z[label] - m, off * t);
/// dlogits = e / s - off, and then minus `on` at the label.
void smoothed_cross_entropy(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                            float* loss, float* dlogits);
/// e = exp(-|z|);  u = 1 + e;  log1p = log(u) + (e - (u - 1)) / u;  loss = fma(-z, label, z > 0 ? z : +0) + log1p.
/// dlogit = sigmoid(z) - label.
void sigmoid_cross_entropy(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits);
/// y = 1 / (1 + exp(-x)).
void sigmoid(int64_t n, const float* x, float* y);
/// dx = dy * (y * (1 - y)).
void sigmoid_backward(int64_t n, const float* y, const float* dy, float* dx);
/// d = p - t;  loss = d * d;  dp = 2 * d.
void squared_error(int rows, const float* predictions, const float* targets, float* loss, float* dpredictions);

}  // namespace lockstep::reference
