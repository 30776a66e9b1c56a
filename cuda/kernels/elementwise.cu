#include "cuda/kernels/elementwise.h"

#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

// No pointer is __restrict__ here: results may replace operands.
template <int kWidth>
__global__ void k_relu(int64_t n, const float* x, float* y) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        Pack<w> values = load<w>(x + i);
        for (float& v : values.v) v = v <= 0.0F ? 0.0F : v;
        store<w>(y + i, values);
    });
}

template <int kWidth>
__global__ void k_relu_backward(int64_t n, const float* y, float* dy) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        const Pack<w> kept = load<w>(y + i);
        Pack<w> gradient = load<w>(dy + i);
        for (int k = 0; k < w; ++k) gradient.v[k] = kept.v[k] > 0.0F ? gradient.v[k] : 0.0F;
        store<w>(dy + i, gradient);
    });
}

template <int kWidth>
__global__ void k_add(int64_t n, const float* left, const float* right, float* dst) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        Pack<w> sum = load<w>(left + i);
        const Pack<w> other = load<w>(right + i);
        for (int k = 0; k < w; ++k) sum.v[k] = sum.v[k] + other.v[k];
        store<w>(dst + i, sum);
    });
}

template <int kWidth>
__global__ void k_scale(int64_t n, float factor, float* x) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        Pack<w> product = load<w>(x + i);
        for (float& v : product.v) v = factor * v;
        store<w>(x + i, product);
    });
}

__global__ void k_gather_columns(int64_t rows, int64_t width, const int32_t* __restrict__ columns,
                                 const float* __restrict__ from, float* __restrict__ to) {
    for_each_item(rows, width, [=](int64_t r, int64_t j) { to[r * width + j] = from[r * width + columns[j]]; });
}

}  // namespace

void launch_relu(int64_t n, const float* x, float* y, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(x, y);
    launch(four ? k_relu<4> : k_relu<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n, in(x, n),
           out(y, n));
}

void launch_relu_backward(int64_t n, const float* y, float* dy, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(y, dy);
    launch(four ? k_relu_backward<4> : k_relu_backward<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n,
           in(y, n), inout(dy, n));
}

void launch_add(int64_t n, const float* left, const float* right, float* dst, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(left, right, dst);
    launch(four ? k_add<4> : k_add<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n, in(left, n),
           in(right, n), out(dst, n));
}

void launch_scale(int64_t n, float factor, float* x, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(x);
    launch(four ? k_scale<4> : k_scale<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n, factor,
           inout(x, n));
}

void launch_gather_columns(int64_t rows, int width, const int32_t* columns, const float* from, float* to,
                           cudaStream_t stream) {
    if (rows == 0 || width == 0) return;
    const LineGrid shape(rows, width);
    launch(k_gather_columns, shape.grid, shape.block, 0, stream, rows, int64_t{width}, in(columns, width),
           in(from, rows * width), out(to, rows * width));
}

}  // namespace lockstep
