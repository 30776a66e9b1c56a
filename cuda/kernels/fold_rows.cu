#include "cuda/kernels/fold_rows.h"

#include "backend/arithmetic.hpp"
#include "cuda/kernels/elements.h"
#include "cuda/kernels/sum_rows.h"

namespace lockstep {
namespace {

// A block: columns along x, leaves along y. All leaves of a round are summed at once, each chain by one thread; then
// one thread of each column walks the program. Losses (one column) have 256 chains at a time.
__global__ void k_fold_rows(const FoldLeaf* __restrict__ leaves, int count, int64_t columns,
                            const float* __restrict__ x, float* __restrict__ out) {
    LS_SHARED(float, sums, kThreadsOfBlock);
    const int across = static_cast<int>(blockDim.x), at_once = static_cast<int>(blockDim.y);
    const int column = static_cast<int>(threadIdx.x), own = static_cast<int>(threadIdx.y);
    for (int64_t first = int64_t{blockIdx.x} * across; first < columns; first += int64_t{gridDim.x} * across) {
        const int64_t c = first + column;
        float stack[kMaxFoldStack];
        int top = 0;
        for (int round = 0; round < count; round += at_once) {
            if (round + own < count && c < columns) {
                const FoldLeaf leaf = leaves[round + own];
                sums[own * across + column] = sum_rows(x + leaf.begin * columns + c, leaf.end - leaf.begin, columns);
            }
            __syncthreads();
            if (own == 0 && c < columns) {
                for (int i = 0; i < at_once && round + i < count; ++i) {
                    stack[top++] = sums[i * across + column];
                    for (int adds = leaves[round + i].adds; adds > 0; --adds) {
                        --top;
                        stack[top - 1] = stack[top - 1] + stack[top];
                    }
                }
            }
            __syncthreads();
        }
        if (own == 0 && c < columns) out[c] = stack[0];
    }
}

}  // namespace

void launch_fold_rows(const FoldLeaf* leaves, int count, int rows, int columns, const float* x, float* out_row,
                      cudaStream_t stream) {
    if (columns == 0) return;
    unsigned across = 1;
    while (across < 32 && across < static_cast<unsigned>(columns)) across *= 2;
    const unsigned blocks = static_cast<unsigned>(std::min<int64_t>((columns + across - 1) / across, kMostBlocks));
    launch(k_fold_rows, blocks, dim3(across, kThreadsOfBlock / across), 0, stream, in(leaves, count), count,
           int64_t{columns}, in(x, int64_t{rows} * columns), out(out_row, columns));
}

}  // namespace lockstep
