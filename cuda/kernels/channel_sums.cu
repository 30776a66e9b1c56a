#include "cuda/kernels/channel_sums.h"

#include "cuda/kernels/row_blocks.h"
#include "cuda/kernels/sum_rows.h"

namespace lockstep {
namespace {

constexpr int kAhead = 16;        // rows
constexpr int kBlocksAhead = 64;  // blocks of rows: there may be thousands, and one thread adds them
constexpr unsigned kJoinThreads = 128;

template <int kWidth>
__global__ void __launch_bounds__(kSumThreads)
    k_channel_partials(int64_t rows, int channels, const float* __restrict__ x, float* __restrict__ partials) {
    LS_SHARED(float, shared, (kRowBlockFloats<kWidth, 1>));
    row_block_sums<kWidth, 1, kAhead>(
        rows, channels, shared, partials, [&](int64_t at) { return load_constant<kWidth>(x + at); },
        [](float(&sums)[1][kWidth], const Pack<kWidth>& row) {
            LS_UNROLL for (int k = 0; k < kWidth; ++k) sums[0][k] = sums[0][k] + row.v[k];
        });
}

__global__ void k_add_row_blocks(int64_t blocks, int64_t columns, const float* __restrict__ partials,
                                 float* __restrict__ sums) {
    const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (c < columns) sums[c] = sum_rows<kBlocksAhead>(partials + c, blocks, columns);
}

}  // namespace

int64_t channel_partials(int64_t rows, int channels) {
    return ceil_div(rows, kSumRows) * channels;
}

void channel_sums(int64_t rows, int channels, const float* x, float* partials, float* sums, cudaStream_t stream) {
    if (rows > 0) {
        const bool four = in_quads(x, channels);
        const RowBlockGrid shape(rows, channels, four ? 4 : 1);
        launch(four ? k_channel_partials<4> : k_channel_partials<1>, shape.grid, shape.block, 0, stream, rows, channels,
               in(x, count(rows * channels)), out(partials, count(channel_partials(rows, channels))));
    }
    add_row_blocks(ceil_div(rows, kSumRows), channels, partials, sums, stream);
}

void add_row_blocks(int64_t blocks, int64_t columns, const float* partials, float* sums, cudaStream_t stream) {
    launch(k_add_row_blocks, static_cast<unsigned>(ceil_div(columns, kJoinThreads)), kJoinThreads, 0, stream, blocks,
           columns, in(partials, count(blocks * columns)), out(sums, count(columns)));
}

}  // namespace lockstep
