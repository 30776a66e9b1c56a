// Weight gradient of dense layers with the canonical tree inside, see gemm.h: a thread runs each shard's chain over its
// samples in registers, adds shards up as the program says, and stores its outputs once. The values that wait for their
// right neighbour stay in registers as long as there are some, the newest ones first: half of all additions take the
// value that came just before. Older ones go to shared memory. No gradient of a shard is ever written to device memory,
// unless a sum is split.
#include <algorithm>
#include <cstdint>

#include "backend/arithmetic.hpp"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_tile.h"

namespace lockstep {
namespace {

using namespace gemm;

struct GradientShape {
    int rows, in, out;
    int chains_of_block;  // that a thread block takes, z-th part by z-th part: all, or one
    int nothing;          // 0, which the compiler cannot know
    bool quads_dy, quads_x, quads_out;
};

// What waits on the stack of the fold: the newest kRegisters values here, older ones in `memory`.
template <class T>
class KeptSums {
  public:
    __device__ __forceinline__ explicit KeptSums(float* memory)
        : memory_(reinterpret_cast<float4*>(memory) + threadIdx.x) {}

    __device__ __forceinline__ void push(const Outputs<T>& sum) {
        if (held_ == T::kRegisters) {
            float4* to = memory_ + spilled_++ * kQuads * T::kThreads;
            LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; c += 4) {
                const float(&row)[T::kOwnColumns] = held_sums_[T::kRegisters - 1][r];
                *to = make_float4(row[c], row[c + 1], row[c + 2], row[c + 3]);
                to += T::kThreads;
            }
        } else {
            ++held_;
        }
        LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; ++c) {
            LS_UNROLL for (int i = T::kRegisters - 1; i > 0; --i) held_sums_[i][r][c] = held_sums_[i - 1][r][c];
            held_sums_[0][r][c] = sum[r][c];
        }
    }

    // sum = newest value + sum
    __device__ __forceinline__ void pop_and_add(Outputs<T>& sum) {
        if (held_ > 0) {
            --held_;
            LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; ++c) {
                sum[r][c] = held_sums_[0][r][c] + sum[r][c];
                LS_UNROLL for (int i = 1; i < T::kRegisters; ++i) held_sums_[i - 1][r][c] = held_sums_[i][r][c];
            }
            return;
        }
        const float4* from = memory_ + --spilled_ * kQuads * T::kThreads;
        LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; c += 4) {
            const float4 left = *from;
            sum[r][c] = left.x + sum[r][c];
            sum[r][c + 1] = left.y + sum[r][c + 1];
            sum[r][c + 2] = left.z + sum[r][c + 2];
            sum[r][c + 3] = left.w + sum[r][c + 3];
            from += T::kThreads;
        }
    }

  private:
    static constexpr int kQuads = T::kOwnRows * T::kOwnColumns / 4;
    float4* memory_;  // a quad of each thread side by side
    int held_ = 0, spilled_ = 0;
    Outputs<T> held_sums_[T::kRegisters] = {};
};

// For a root of a single chain: nothing ever waits.
struct NothingKept {
    __device__ __forceinline__ explicit NothingKept(float*) {}
};

template <class T>
__device__ __forceinline__ void store_gradient(const GradientShape& s, const TilePlace<T>& tile, const Place<T>& place,
                                               const Outputs<T>& sum, float* dw) {
    LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) {
        const int row = tile.row + place.row_of(r);
        if (row >= s.out) continue;
        LS_UNROLL for (int g = 0; g < T::kColumnGroups; ++g) {
            const int column = tile.column + place.column_of(4 * g), left = s.in - column;
            float* const to = dw + static_cast<int64_t>(row) * s.in + column;
            if (s.quads_out && left >= 4) {
                *reinterpret_cast<float4*>(to) =
                    make_float4(sum[r][4 * g], sum[r][4 * g + 1], sum[r][4 * g + 2], sum[r][4 * g + 3]);
            } else {
                LS_UNROLL for (int c = 0; c < 4; ++c) if (c < left) to[c] = sum[r][4 * g + c];
            }
        }
    }
}

// Slices follow each other through all samples of the root, whatever chain they belong to: short chains do not wait for
// memory at their borders.
template <class T, bool kStack>
__global__ void __launch_bounds__(T::kThreads, kStack ? T::kStackBlocks : T::kBlocks)
    k_weight_gradient(const float* __restrict__ dy, const float* __restrict__ x, const FoldLeaf* __restrict__ leaves,
                      float* __restrict__ dw, GradientShape s) {
    LS_DYN_SHARED(float, memory);
    const Slices<T> slices{memory};
    const TilePlace<T> tile(s.out, s.in);
    const Place<T> place;

    const FoldLeaf* chain = leaves + static_cast<int64_t>(blockIdx.z) * s.chains_of_block;
    const FoldLeaf* const last_chain = chain + s.chains_of_block - 1;
    const int begin = chain->begin, end = last_chain->end;
    [[maybe_unused]] int chain_end = chain->end;
    SliceLoader<T, T::kRows, false> rows(dy, s.out, tile.row, s.out, s.quads_dy, begin, end);
    SliceLoader<T, T::kColumns, false> columns(x, s.in, tile.column, s.in, s.quads_x, begin, end);
    rows.load();
    columns.load();
    rows.store(slices.rows(0));
    columns.store(slices.columns(0));
    __syncthreads();
    using Kept = std::conditional_t<kStack, KeptSums<T>, NothingKept>;
    [[maybe_unused]] Kept kept(memory + T::kShape.slice_bytes / sizeof(float));
    Outputs<T> sum;
    clear<T>(sum);
    int buffer = 0;
    for (int k = begin; k < end; k += T::kDepth) {
        const int next = k + T::kDepth;
        const bool more = next < end;
        if (more) {
            rows.load();
            columns.load();
        }
        if constexpr (kStack) {
            for (int at = k; at < min(next, end);) {
                const int stop = min(next, chain_end);
                multiply_slice<T>(slices, buffer, at - k, stop - k, place, sum);
                at = stop;
                if (at < chain_end) continue;
                for (int adds = chain->adds; adds > 0; --adds) kept.pop_and_add(sum);
                if (chain == last_chain) continue;
                kept.push(sum);
                clear<T>(sum);
                ++chain;
                chain_end = chain->end;
            }
        } else {
            multiply_slice<T>(slices, buffer, 0, min(T::kDepth, end - k), place, sum);
        }
        buffer ^= 1;
        if (more) {
            rows.store(slices.rows(buffer));
            columns.store(slices.columns(buffer));
        }
        __syncthreads();
    }
    // Found again from a number that the compiler cannot know to be the same: the chains have no registers to remember
    // it.
    const TilePlace<T> same_tile(s.out + s.nothing, s.in);
    store_gradient<T>(s, same_tile, place, sum, dw + static_cast<int64_t>(blockIdx.z) * s.out * s.in);
}

// The same tree over chains that lie in memory: `partial` holds n values of each chain.
__global__ void __launch_bounds__(256)
    k_fold_chains(const float* __restrict__ partial, const FoldLeaf* __restrict__ leaves, float* __restrict__ dw,
                  int count, int64_t n) {
    float stack[kMaxFoldStack + 1];  // one more for a shard of several chains
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        int depth = 0;
        float value = 0.0F;
        for (int chain = 0; chain < count; ++chain) {
            if (chain > 0) stack[depth++] = value;
            value = __ldg(partial + chain * n + i);
            for (int adds = leaves[chain].adds; adds > 0; --adds) value = stack[--depth] + value;
        }
        dw[i] = value;
    }
}

}  // namespace

void gemm_weight_gradient(GemmWay way, int in_features, int out_features, const GemmChains& chains, const float* x,
                          const float* dy, int rows, float* dw, float* partial, cudaStream_t stream) {
    const bool split = way.split && chains.count > 1;
    const auto samples = static_cast<std::size_t>(rows), parts = static_cast<std::size_t>(split ? chains.count : 1),
               n = static_cast<std::size_t>(out_features) * static_cast<std::size_t>(in_features);
    const auto leaves = in(chains.leaves, static_cast<std::size_t>(chains.count));
    float* const to = split ? partial : dw;
    const GradientShape shape{rows,
                              in_features,
                              out_features,
                              split ? 1 : chains.count,
                              0,
                              in_quads(dy, out_features),
                              in_quads(x, in_features),
                              in_quads(to, in_features)};
    const auto run = [&]<class T, bool kStack>() {
        const dim3 grid(tiles_of<T>(out_features, in_features), 1, static_cast<unsigned>(parts));
        launch(k_weight_gradient<T, kStack>, grid, T::kThreads, gemm_gradient_shared(way, chains.kept), stream,
               in(dy, samples * static_cast<std::size_t>(out_features)),
               in(x, samples * static_cast<std::size_t>(in_features)), leaves, out(to, n * parts), shape);
    };
    with_tile(way.tile, [&]<class T>() {
        if (split || chains.count == 1) {
            run.template operator()<T, false>();
        } else {
            run.template operator()<T, true>();
        }
    });
    if (!split) return;
    const auto blocks = static_cast<unsigned>(std::min<std::size_t>((n + 255) / 256, 4096));
    launch(k_fold_chains, blocks, 256, 0, stream, in(static_cast<const float*>(to), n * parts), leaves, out(dw, n),
           chains.count, static_cast<int64_t>(n));
}

// The limit is the kernel's, and whoever sets it takes the place of whoever did before: so it is what the device has,
// and not what this plan needs.
void gemm_allow_shared(GemmWay way, int kept) {
    if (gemm_gradient_shared(way, kept) <= kSharedWithoutOptIn) return;
    int device = 0, most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    with_tile(way.tile, [&]<class T>() { allow_shared(k_weight_gradient<T, true>, static_cast<std::size_t>(most)); });
}

}  // namespace lockstep
