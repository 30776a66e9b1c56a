#include "backend/cpu/reference_loss.hpp"

#include <array>
#include <cmath>

#include "core/fixed_math.hpp"

namespace lockstep::reference {
namespace {

using Chains = std::array<float, 16>;

/// i + (i+8), then +4, +2, +1.
float folded(Chains chains) {
    for (std::size_t width = 8; width > 0; width /= 2) {
        for (std::size_t i = 0; i < width; ++i) chains[i] = chains[i] + chains[i + width];
    }
    return chains[0];
}

float sigmoid_of(float x) {
    return 1.0F / (1.0F + exp_fixed(-x));
}

}  // namespace

void smoothed_cross_entropy(int rows, int classes, float smoothing, const float* logits, const int32_t* labels,
                            float* loss, float* dlogits) {
    const float off = smoothing / static_cast<float>(classes), on = 1.0F - smoothing;
    for (int r = 0; r < rows; ++r) {
        const float* z = logits + int64_t{r} * classes;
        float* dz = dlogits == nullptr ? nullptr : dlogits + int64_t{r} * classes;
        float maximum = z[0];
        for (int c = 1; c < classes; ++c) maximum = z[c] > maximum ? z[c] : maximum;
        const float distance = z[labels[r]] - maximum;  // read first: dlogits may be logits
        Chains exponentials{}, distances{};
        for (int c = 0; c < classes; ++c) {
            const auto chain = static_cast<std::size_t>(c % 16);
            const float e = exp_fixed(z[c] - maximum);
            exponentials[chain] = exponentials[chain] + e;
            distances[chain] = distances[chain] + (z[c] - maximum);
            if (dz != nullptr) dz[c] = e;
        }
        const float sum = folded(exponentials);
        loss[r] = log_fixed(sum) - std::fma(on, distance, off * folded(distances));
        if (dz == nullptr) continue;
        for (int c = 0; c < classes; ++c) dz[c] = dz[c] / sum - off;
        dz[labels[r]] = dz[labels[r]] - on;
    }
}

void sigmoid_cross_entropy(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits) {
    for (int r = 0; r < rows; ++r) {
        const float z = logits[r];  // read first: dlogits may be logits
        const auto label = static_cast<float>(labels[r]);
        const float e = exp_fixed(-std::fabs(z));
        const float u = 1.0F + e;
        const float log1p = log_fixed(u) + (e - (u - 1.0F)) / u;
        loss[r] = std::fma(-z, label, z > 0.0F ? z : 0.0F) + log1p;
        if (dlogits != nullptr) dlogits[r] = sigmoid_of(z) - label;
    }
}

void sigmoid(int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = sigmoid_of(x[i]);
}

void sigmoid_backward(int64_t n, const float* y, const float* dy, float* dx) {
    for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (y[i] * (1.0F - y[i]));
}

void squared_error(int rows, const float* predictions, const float* targets, float* loss, float* dpredictions) {
    for (int r = 0; r < rows; ++r) {
        const float d = predictions[r] - targets[r];
        loss[r] = d * d;
        if (dpredictions != nullptr) dpredictions[r] = 2.0F * d;
    }
}

}  // namespace lockstep::reference
