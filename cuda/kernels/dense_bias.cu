// Threads take columns, so that a warp reads whole lines of a row, and a block works on 16 shards at a time. A shard's
// sum is one chain of additions: what keeps it from waiting for memory are the rows that a thread loads ahead of it.
#include "cuda/kernels/dense_bias.h"

#include "cuda/device.h"
#include "cuda/kernels/gemm_tile.h"

namespace lockstep {
namespace {

constexpr int kColumns = 32, kShards = 16;  // of a block at a time
constexpr int kAhead = 16;                  // rows

__device__ __forceinline__ float sum_rows(const float* from, int rows, int64_t stride) {
    float sum = 0.0F;
    for (; rows >= kAhead; rows -= kAhead, from += kAhead * stride) {
        float ahead[kAhead];
        LS_UNROLL for (int i = 0; i < kAhead; ++i) ahead[i] = __ldg(from + i * stride);
        LS_UNROLL for (int i = 0; i < kAhead; ++i) sum = sum + ahead[i];
    }
    for (; rows > 0; --rows, from += stride) sum = sum + __ldg(from);
    return sum;
}

__global__ void __launch_bounds__(kColumns* kShards)
    k_bias_gradient(const float* __restrict__ dy, const int32_t* __restrict__ program, float* __restrict__ db,
                    int first, int count, int columns) {
    LS_SHARED(float, sums, kShards* kColumns);
    LS_SHARED(float, stack, kGemmMostKept* kColumns);
    const int lane = static_cast<int>(threadIdx.x) % kColumns, slot = static_cast<int>(threadIdx.x) / kColumns;
    const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
    program += kGemmChainInts * first;
    int depth = 0;
    float value = 0.0F;
    for (int base = 0; base < count; base += kShards) {
        if (base + slot < count && column < columns) {
            const int begin = __ldg(program + kGemmChainInts * (base + slot)),
                      end = __ldg(program + kGemmChainInts * (base + slot) + 1);
            sums[slot * kColumns + lane] = sum_rows(dy + int64_t{begin} * columns + column, end - begin, columns);
        }
        __syncthreads();
        if (slot == 0 && column < columns) {
            for (int shard = base; shard < min(count, base + kShards); ++shard) {
                if (shard > 0) stack[depth++ * kColumns + lane] = value;
                value = sums[(shard - base) * kColumns + lane];
                for (int adds = __ldg(program + kGemmChainInts * shard + 2); adds > 0; --adds)
                    value = stack[--depth * kColumns + lane] + value;
            }
        }
        __syncthreads();
    }
    if (slot == 0 && column < columns) db[column] = value;
}

}  // namespace

void dense_bias_gradient(int rows, int columns, const GemmChains& shards, const float* dy, float* db,
                         cudaStream_t stream) {
    const auto width = static_cast<std::size_t>(columns);
    launch(k_bias_gradient, (columns + kColumns - 1) / kColumns, kColumns * kShards, 0, stream,
           in(dy, static_cast<std::size_t>(rows) * width),
           in(shards.program, static_cast<std::size_t>(kGemmChainInts * (shards.first + shards.count))), out(db, width),
           shards.first, shards.count, columns);
}

}  // namespace lockstep
