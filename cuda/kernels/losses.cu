// A thread an element; derivatives are written after the last read of their row, since they may replace it.
#include "cuda/kernels/losses.h"

#include "core/fixed_float.hpp"
#include "cuda/kernels/counts.h"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

__device__ __forceinline__ float sigmoid_of(float x) {
    return __fdiv_rn(1.0F, 1.0F + fixed::exp_float(-x));
}

__global__ void k_sigmoid_cross_entropy(int64_t rows, const float* logits, const int32_t* __restrict__ labels,
                                        float* __restrict__ loss, float* dlogits) {
    for_each_pack<1>(rows, [=](auto, int64_t r) {
        const float z = logits[r], label = static_cast<float>(labels[r]);
        const float e = fixed::exp_float(z > 0.0F ? -z : z), u = 1.0F + e;
        const float log1p = fixed::log_float(u) + __fdiv_rn(e - (u - 1.0F), u);
        loss[r] = __fmaf_rn(-z, label, z > 0.0F ? z : 0.0F) + log1p;
        if (dlogits != nullptr) dlogits[r] = sigmoid_of(z) - label;
    });
}

template <int kWidth>
__global__ void k_sigmoid(int64_t n, const float* x, float* y) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        Pack<w> values = load<w>(x + i);
        for (float& v : values.v) v = sigmoid_of(v);
        store<w>(y + i, values);
    });
}

template <int kWidth>
__global__ void k_sigmoid_backward(int64_t n, const float* __restrict__ y, const float* dy, float* dx) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        const Pack<w> value = load_constant<w>(y + i);
        Pack<w> gradient = load<w>(dy + i);
        for (int k = 0; k < w; ++k) gradient.v[k] = gradient.v[k] * (value.v[k] * (1.0F - value.v[k]));
        store<w>(dx + i, gradient);
    });
}

__global__ void k_squared_error(int64_t rows, const float* predictions, const float* __restrict__ targets,
                                float* __restrict__ loss, float* dpredictions) {
    for_each_pack<1>(rows, [=](auto, int64_t r) {
        const float d = predictions[r] - targets[r];
        loss[r] = d * d;
        if (dpredictions != nullptr) dpredictions[r] = 2.0F * d;
    });
}

}  // namespace

void launch_sigmoid_cross_entropy(int rows, const float* logits, const int32_t* labels, float* loss, float* dlogits,
                                  cudaStream_t stream) {
    if (rows == 0) return;
    const std::size_t n = count(rows);
    launch(k_sigmoid_cross_entropy, blocks_for(rows), kThreadsOfBlock, 0, stream, int64_t{rows}, in(logits, n),
           in(labels, n), out(loss, n), out(dlogits, dlogits == nullptr ? 0 : n));
}

void launch_sigmoid(int64_t n, const float* x, float* y, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(x, y);
    launch(four ? k_sigmoid<4> : k_sigmoid<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n,
           in(x, count(n)), out(y, count(n)));
}

void launch_sigmoid_backward(int64_t n, const float* y, const float* dy, float* dx, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(y, dy, dx);
    launch(four ? k_sigmoid_backward<4> : k_sigmoid_backward<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0,
           stream, n, in(y, count(n)), in(dy, count(n)), out(dx, count(n)));
}

void launch_squared_error(int rows, const float* predictions, const float* targets, float* loss, float* dpredictions,
                          cudaStream_t stream) {
    if (rows == 0) return;
    const std::size_t n = count(rows);
    launch(k_squared_error, blocks_for(rows), kThreadsOfBlock, 0, stream, int64_t{rows}, in(predictions, n),
           in(targets, n), out(loss, n), out(dpredictions, dpredictions == nullptr ? 0 : n));
}

}  // namespace lockstep
