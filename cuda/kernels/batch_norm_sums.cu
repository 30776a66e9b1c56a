// The sums of batch norm over rows: blocks of rows side by side, then one thread a channel adds the blocks.
#include "cuda/kernels/batch_norm.h"
#include "cuda/kernels/channel_sums.h"
#include "cuda/kernels/row_blocks.h"

namespace lockstep {
namespace {

constexpr int kSquaresAhead = 16;  // rows under way at once
constexpr int kGradientsAhead = 8;

// Where a relu's y is not > 0, dy counts as +0.
__device__ __forceinline__ float passed(float dy, float y) {
    return y > 0.0F ? dy : 0.0F;
}

template <int kWidth>
__global__ void __launch_bounds__(kSumThreads)
    k_square_partials(int64_t rows, int channels, float row_count, const float* __restrict__ x,
                      const float* __restrict__ row_sums, float* __restrict__ partials) {
    LS_SHARED(float, shared, (kRowBlockFloats<kWidth, 1>));
    Pack<kWidth> mean{};
    if (const int c = summed_channel<kWidth>(); c < channels) {
        const Pack<kWidth> sum = load_constant<kWidth>(row_sums + c);
        LS_UNROLL for (int k = 0; k < kWidth; ++k) mean.v[k] = __fdiv_rn(sum.v[k], row_count);
    }
    row_block_sums<kWidth, 1, kSquaresAhead>(
        rows, channels, shared, partials, [&](int64_t at) { return load_constant<kWidth>(x + at); },
        [&](float(&sums)[1][kWidth], const Pack<kWidth>& row) {
            LS_UNROLL for (int k = 0; k < kWidth; ++k) {
                const float d = row.v[k] - mean.v[k];
                sums[0][k] = __fmaf_rn(d, d, sums[0][k]);
            }
        });
}

template <int kWidth>
struct GradientRow {
    Pack<kWidth> x, dy, y;
};

template <int kWidth, bool kMasked>
__global__ void __launch_bounds__(kSumThreads)
    k_gradient_partials(int64_t rows, int channels, const float* __restrict__ x, const float* __restrict__ statistics,
                        const float* __restrict__ dy, const float* __restrict__ masked_by,
                        float* __restrict__ partials) {
    LS_SHARED(float, shared, (kRowBlockFloats<kWidth, 2>));
    Pack<kWidth> mean{}, inverse{};
    if (const int c = summed_channel<kWidth>(); c < channels) {
        mean = load_constant<kWidth>(statistics + c);
        inverse = load_constant<kWidth>(statistics + channels + c);
    }
    row_block_sums<kWidth, 2, kGradientsAhead>(
        rows, channels, shared, partials,
        [&](int64_t at) {
            GradientRow<kWidth> row{load_constant<kWidth>(x + at), load_constant<kWidth>(dy + at), {}};
            if constexpr (kMasked) row.y = load_constant<kWidth>(masked_by + at);
            return row;
        },
        [&](float(&sums)[2][kWidth], const GradientRow<kWidth>& row) {
            LS_UNROLL for (int k = 0; k < kWidth; ++k) {
                const float gradient = kMasked ? passed(row.dy.v[k], row.y.v[k]) : row.dy.v[k];
                const float xhat = (row.x.v[k] - mean.v[k]) * inverse.v[k];
                sums[0][k] = __fmaf_rn(gradient, xhat, sums[0][k]);
                sums[1][k] = sums[1][k] + gradient;
            }
        });
}

}  // namespace

int64_t batch_norm_partials(int64_t rows, int channels) {
    return 2 * channel_partials(rows, channels);
}

void launch_batch_moments(int64_t rows, int channels, const float* x, float* partials, float* moments,
                          cudaStream_t stream) {
    channel_sums(rows, channels, x, partials, moments, stream);
    const int64_t blocks = ceil_div(rows, kSumRows);
    if (rows > 0) {
        const bool four = in_quads(x, channels) && all_aligned(moments);
        const RowBlockGrid shape(rows, channels, four ? 4 : 1);
        launch(four ? k_square_partials<4> : k_square_partials<1>, shape.grid, shape.block, 0, stream, rows, channels,
               static_cast<float>(rows), in(x, count(rows * channels)),
               in(static_cast<const float*>(moments), count(channels)), out(partials, count(blocks * channels)));
    }
    add_row_blocks(blocks, channels, partials, moments + channels, stream);
}

void launch_batch_norm_sums(int64_t rows, int channels, const float* x, const float* statistics, const float* dy,
                            const float* masked_by, float* partials, float* sums, cudaStream_t stream) {
    const int64_t blocks = ceil_div(rows, kSumRows);
    if (rows > 0) {
        const bool four = channels % 4 == 0 && all_aligned(x, statistics, dy, masked_by);
        const RowBlockGrid shape(rows, channels, four ? 4 : 1);
        const auto start = [&](auto kernel) {
            launch(kernel, shape.grid, shape.block, 0, stream, rows, channels, in(x, count(rows * channels)),
                   in(statistics, count(2 * channels)), in(dy, count(rows * channels)),
                   in(masked_by, masked_by == nullptr ? 0 : count(rows * channels)),
                   out(partials, count(blocks * 2 * channels)));
        };
        if (masked_by == nullptr) {
            start(four ? k_gradient_partials<4, false> : k_gradient_partials<1, false>);
        } else {
            start(four ? k_gradient_partials<4, true> : k_gradient_partials<1, true>);
        }
    }
    add_row_blocks(blocks, 2 * channels, partials, sums, stream);
}

}  // namespace lockstep
