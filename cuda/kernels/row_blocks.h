// Sums over the rows of arrays [rows][channels] in the order that defines their bits: blocks of 256 rows; in a block
// four chains from +0 (row mod 4), added as (0+1)+(2+3). A thread owns a chain of one channel, or of four neighbouring
// ones; channels lie on lanes, so that memory is read in whole lines. No addition waits for a load: several rows are
// under way at once. Blocks are added by a second kernel (channel_sums.h). Device code; included by .cu files.
#pragma once

#include <algorithm>

#include "cuda/kernels/counts.h"
#include "cuda/kernels/elements.h"

namespace lockstep {

inline constexpr int kSumRows = 256;
inline constexpr int kSumChains = 4;
inline constexpr int kSumThreads = 128;  // of a block of threads

/// threadIdx.x: channels, as many lanes as there are; threadIdx.y: chains of one or more blocks of rows.
struct RowBlockGrid {
    dim3 grid, block;
    RowBlockGrid(int64_t rows, int channels, int width) {
        const int64_t packs = channels / width;
        unsigned lanes = 1;
        while (lanes < 32 && lanes < packs) lanes *= 2;
        block = dim3(lanes, kSumThreads / lanes);
        const int64_t at_once = block.y / kSumChains;
        const int64_t blocks = ceil_div(ceil_div(rows, kSumRows), at_once);
        grid = dim3(static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kMostBlocks)),
                    static_cast<unsigned>(ceil_div(packs, lanes)));
    }
};

/// The first channel of this thread in the grid of RowBlockGrid; may lie behind the last one.
template <int kWidth>
__device__ __forceinline__ int summed_channel() {
    return static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kWidth;
}

/// Floats of shared memory for row_block_sums.
template <int kWidth, int kSums>
inline constexpr int kRowBlockFloats = kSumThreads* kSums* kWidth;

/// partials [block of rows][kSums][channels]: of each block kSums sums. load(at) gets what one row adds, at element
/// `at` of the arrays, and add(sums, loaded) adds it to chains sums[kSums][kWidth]; kAhead rows are loaded ahead.
template <int kWidth, int kSums, int kAhead, class Load, class Add>
__device__ __forceinline__ void row_block_sums(int64_t rows, int channels, float* shared, float* partials, Load load,
                                               Add add) {
    const int lanes = static_cast<int>(blockDim.x), line = static_cast<int>(threadIdx.y);
    const int chain = line % kSumChains, own = line / kSumChains;
    const int64_t at_once = blockDim.y / kSumChains, blocks = (rows + kSumRows - 1) / kSumRows;
    const int c = summed_channel<kWidth>();
    for (int64_t first = blockIdx.x * at_once; first < blocks; first += gridDim.x * at_once) {
        const int64_t block = first + own;
        const bool used = block < blocks && c < channels;
        float sums[kSums][kWidth] = {};
        if (used) {
            const int64_t step = int64_t{kSumChains} * channels;
            int64_t row = block * kSumRows + chain, at = row * channels + c;
            const int64_t end = min(rows, (block + 1) * kSumRows);
            for (; row + (kAhead - 1) * kSumChains < end; row += kAhead * kSumChains, at += kAhead * step) {
                decltype(load(at)) ahead[kAhead];
                LS_UNROLL for (int i = 0; i < kAhead; ++i) ahead[i] = load(at + i * step);
                LS_UNROLL for (int i = 0; i < kAhead; ++i) add(sums, ahead[i]);
            }
            for (; row < end; row += kSumChains, at += step) add(sums, load(at));
        }
        LS_UNROLL for (int s = 0; s < kSums; ++s) LS_UNROLL for (int k = 0; k < kWidth; ++k)
            shared[((s * kWidth + k) * static_cast<int>(blockDim.y) + line) * lanes + static_cast<int>(threadIdx.x)] =
                sums[s][k];
        __syncthreads();
        if (used) {  // the four threads of a block and lane share its values
            LS_UNROLL for (int value = chain; value < kSums * kWidth; value += kSumChains) {
                const float* const of = shared + (value * static_cast<int>(blockDim.y) + own * kSumChains) * lanes +
                                        static_cast<int>(threadIdx.x);
                partials[(block * kSums + value / kWidth) * channels + c + value % kWidth] =
                    (of[0] + of[lanes]) + (of[2 * lanes] + of[3 * lanes]);
            }
        }
        __syncthreads();  // before the next blocks of rows overwrite the chains
    }
}

}  // namespace lockstep
