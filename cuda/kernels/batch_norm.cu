// Batch norm beside its sums: a few numbers for each channel, and the two passes over all rows, element by element.
#include "cuda/kernels/batch_norm.h"

#include <algorithm>

#include "cuda/kernels/counts.h"
#include "cuda/kernels/elements.h"
#include "cuda/kernels/finish_sum.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocksOfPass = 4096;  // what is left is reached by going round again

/// threadIdx.x: channels; threadIdx.y: rows. A thread keeps its channels' numbers and goes from row to row.
struct ChannelGrid {
    dim3 grid, block;
    ChannelGrid(int64_t rows, int64_t packs) {
        unsigned lanes = 1;
        while (lanes < 64 && lanes < packs) lanes *= 2;
        block = dim3(lanes, kThreadsOfBlock / lanes);
        const int64_t across = ceil_div(packs, lanes), down = ceil_div(rows, block.y);
        const int64_t most = std::min<int64_t>(65535, std::max<int64_t>(1, kBlocksOfPass / across));
        grid = dim3(static_cast<unsigned>(across), static_cast<unsigned>(std::min(down, most)));
    }
};

__device__ __forceinline__ int own_channel(int width) {
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
}

/// body(element) of the own channels in each of this thread's rows.
template <class Body>
__device__ __forceinline__ void for_own_rows(int64_t rows, int channels, int channel, Body body) {
    for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
         row += int64_t{gridDim.y} * blockDim.y) {
        body(row * channels + channel);
    }
}

// x and y may be the same array: no __restrict__.
template <int kWidth>
__global__ void __launch_bounds__(kThreadsOfBlock)
    k_batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* __restrict__ statistics,
                 const float* __restrict__ gamma, const float* __restrict__ beta, float* y) {
    const int c = own_channel(kWidth);
    if (c >= channels) return;
    const Pack<kWidth> mean = load_constant<kWidth>(statistics + c),
                       inverse = load_constant<kWidth>(statistics + channels + c),
                       scale = load_constant<kWidth>(gamma + c), shift = load_constant<kWidth>(beta + c);
    for_own_rows(rows, channels, c, [&](int64_t at) {
        Pack<kWidth> values = load<kWidth>(x + at);
        LS_UNROLL for (int k = 0; k < kWidth; ++k) {
            const float xhat = (values.v[k] - mean.v[k]) * inverse.v[k];
            values.v[k] = finish_sum(__fmaf_rn(scale.v[k], xhat, shift.v[k]), false, 0.0F, relu);
        }
        store<kWidth>(y + at, values);
    });
}

// dy and dx may be the same array.
template <int kWidth, bool kMasked>
__global__ void __launch_bounds__(kThreadsOfBlock)
    k_batch_norm_backward(int64_t rows, int channels, float row_count, const float* __restrict__ x,
                          const float* __restrict__ statistics, const float* __restrict__ gamma,
                          const float* __restrict__ sums, const float* dy, const float* __restrict__ masked_by,
                          float* dx) {
    const int c = own_channel(kWidth);
    if (c >= channels) return;
    const Pack<kWidth> mean = load_constant<kWidth>(statistics + c),
                       inverse = load_constant<kWidth>(statistics + channels + c);
    Pack<kWidth> scale = load_constant<kWidth>(gamma + c), slope = load_constant<kWidth>(sums + c),
                 offset = load_constant<kWidth>(sums + channels + c);
    LS_UNROLL for (int k = 0; k < kWidth; ++k) {
        scale.v[k] = scale.v[k] * inverse.v[k];
        slope.v[k] = __fdiv_rn(slope.v[k], row_count);
        offset.v[k] = __fdiv_rn(offset.v[k], row_count);
    }
    for_own_rows(rows, channels, c, [&](int64_t at) {
        const Pack<kWidth> values = load_constant<kWidth>(x + at);
        Pack<kWidth> gradient = load<kWidth>(dy + at);
        if constexpr (kMasked) {
            const Pack<kWidth> kept = load_constant<kWidth>(masked_by + at);
            LS_UNROLL for (int k = 0; k < kWidth; ++k) gradient.v[k] = kept.v[k] > 0.0F ? gradient.v[k] : 0.0F;
        }
        LS_UNROLL for (int k = 0; k < kWidth; ++k) {
            const float xhat = (values.v[k] - mean.v[k]) * inverse.v[k];
            gradient.v[k] = scale.v[k] * __fmaf_rn(-xhat, slope.v[k], gradient.v[k] - offset.v[k]);
        }
        store<kWidth>(dx + at, gradient);
    });
}

// `into` may be either.
__global__ void k_merge_moments(int64_t channels, float left_count, float right_count, float factor, const float* left,
                                const float* right, float* into) {
    for_each_pack<1>(channels, [=](auto, int64_t c) {
        const int64_t q = channels + c;
        const float d = __fdiv_rn(right[c], right_count) - __fdiv_rn(left[c], left_count);
        const float sum = left[c] + right[c];
        const float squares = __fmaf_rn(d * d, factor, left[q] + right[q]);
        into[c] = sum;
        into[q] = squares;
    });
}

__global__ void k_batch_statistics(int64_t channels, float row_count, float epsilon, const float* __restrict__ moments,
                                   float* __restrict__ statistics) {
    for_each_pack<1>(channels, [=](auto, int64_t c) {
        const int64_t q = channels + c;
        statistics[c] = __fdiv_rn(moments[c], row_count);
        statistics[q] = __fdiv_rn(1.0F, __fsqrt_rn(__fdiv_rn(moments[q], row_count) + epsilon));
    });
}

__global__ void k_running_statistics(int64_t channels, float epsilon, const float* __restrict__ running,
                                     float* __restrict__ statistics) {
    for_each_pack<1>(channels, [=](auto, int64_t c) {
        statistics[c] = running[c];
        statistics[channels + c] = __fdiv_rn(1.0F, __fsqrt_rn(running[channels + c] + epsilon));
    });
}

__global__ void k_update_running(int64_t channels, float row_count, float variance_count, float momentum,
                                 float one_minus_momentum, const float* __restrict__ moments,
                                 float* __restrict__ running) {
    for_each_pack<1>(channels, [=](auto, int64_t c) {
        const int64_t v = channels + c;
        running[c] = __fmaf_rn(momentum, running[c], one_minus_momentum * __fdiv_rn(moments[c], row_count));
        running[v] = __fmaf_rn(momentum, running[v], one_minus_momentum * __fdiv_rn(moments[v], variance_count));
    });
}

std::size_t both(int channels) {
    return count(2 * int64_t{channels});
}

}  // namespace

void launch_merge_moments(int channels, int64_t left_rows, int64_t right_rows, const float* left, const float* right,
                          float* into, cudaStream_t stream) {
    const auto factor = static_cast<float>(static_cast<double>(left_rows) * static_cast<double>(right_rows) /
                                           static_cast<double>(left_rows + right_rows));
    launch(k_merge_moments, blocks_for(channels), kThreadsOfBlock, 0, stream, int64_t{channels},
           static_cast<float>(left_rows), static_cast<float>(right_rows), factor, in(left, both(channels)),
           in(right, both(channels)), out(into, both(channels)));
}

void launch_batch_statistics(int64_t rows, int channels, float epsilon, const float* moments, float* statistics,
                             cudaStream_t stream) {
    launch(k_batch_statistics, blocks_for(channels), kThreadsOfBlock, 0, stream, int64_t{channels},
           static_cast<float>(rows), epsilon, in(moments, both(channels)), out(statistics, both(channels)));
}

void launch_running_statistics(int channels, float epsilon, const float* running, float* statistics,
                               cudaStream_t stream) {
    launch(k_running_statistics, blocks_for(channels), kThreadsOfBlock, 0, stream, int64_t{channels}, epsilon,
           in(running, both(channels)), out(statistics, both(channels)));
}

void launch_update_running(int64_t rows, int channels, float momentum, float one_minus_momentum, bool unbiased,
                           const float* moments, float* running, cudaStream_t stream) {
    launch(k_update_running, blocks_for(channels), kThreadsOfBlock, 0, stream, int64_t{channels},
           static_cast<float>(rows), static_cast<float>(unbiased && rows > 1 ? rows - 1 : rows), momentum,
           one_minus_momentum, in(moments, both(channels)), inout(running, both(channels)));
}

void launch_batch_norm(int64_t rows, int channels, bool relu, const float* x, const float* statistics,
                       const float* gamma, const float* beta, float* y, cudaStream_t stream) {
    if (rows == 0) return;
    const bool four = channels % 4 == 0 && all_aligned(x, statistics, gamma, beta, y);
    const ChannelGrid shape(rows, channels / (four ? 4 : 1));
    launch(four ? k_batch_norm<4> : k_batch_norm<1>, shape.grid, shape.block, 0, stream, rows, channels, relu,
           in(x, count(rows * channels)), in(statistics, both(channels)), in(gamma, count(channels)),
           in(beta, count(channels)), out(y, count(rows * channels)));
}

void launch_batch_norm_backward(int64_t rows, int channels, int64_t rows_of_sums, const float* x,
                                const float* statistics, const float* gamma, const float* sums, const float* dy,
                                const float* masked_by, float* dx, cudaStream_t stream) {
    if (rows == 0) return;
    const bool four = channels % 4 == 0 && all_aligned(x, statistics, gamma, sums, dy, masked_by, dx);
    const ChannelGrid shape(rows, channels / (four ? 4 : 1));
    const auto start = [&](auto kernel) {
        launch(kernel, shape.grid, shape.block, 0, stream, rows, channels, static_cast<float>(rows_of_sums),
               in(x, count(rows * channels)), in(statistics, both(channels)), in(gamma, count(channels)),
               in(sums, both(channels)), in(dy, count(rows * channels)),
               in(masked_by, masked_by == nullptr ? 0 : count(rows * channels)), out(dx, count(rows * channels)));
    };
    if (masked_by == nullptr) {
        start(four ? k_batch_norm_backward<4, false> : k_batch_norm_backward<1, false>);
    } else {
        start(four ? k_batch_norm_backward<4, true> : k_batch_norm_backward<1, true>);
    }
}

}  // namespace lockstep
