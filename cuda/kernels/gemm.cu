// Forward and data gradient of dense layers: sums over features, see gemm.h.
#include "cuda/kernels/gemm.h"

#include <algorithm>

#include "cuda/kernels/gemm_tile.h"

namespace lockstep {
namespace {

using namespace gemm;

struct SumShape {
    int rows, columns, depth;
    int depth_of_block;  // terms that a thread block takes, z-th part by z-th part: all, or one chain
    int nothing;         // 0, which the compiler cannot know: see k_blocked_sum
    bool quads_rows, quads_columns, quads_out;
    bool relu;
};

// total = total + chain, where the total of earlier chains stands in `y`; after the last one, bias and relu.
template <class T>
__device__ __forceinline__ void close_chain(const SumShape& s, const TilePlace<T>& tile, const Place<T>& place,
                                            const Outputs<T>& sum, bool first, bool last, const float* bias, float* y) {
    LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) {
        const int row = tile.row + place.row_of(r);
        if (row >= s.rows) continue;
        LS_UNROLL for (int g = 0; g < T::kColumnGroups; ++g) {
            const int column = tile.column + place.column_of(4 * g), left = s.columns - column;
            float* const to = y + static_cast<int64_t>(row) * s.columns + column;
            float total[4] = {0.0F, 0.0F, 0.0F, 0.0F};
            const bool quad = s.quads_out && left >= 4;
            if (!first && quad) {
                const float4 before = *reinterpret_cast<const float4*>(to);
                total[0] = before.x;
                total[1] = before.y;
                total[2] = before.z;
                total[3] = before.w;
            } else if (!first) {
                LS_UNROLL for (int c = 0; c < 4; ++c) if (c < left) total[c] = to[c];
            }
            LS_UNROLL for (int c = 0; c < 4; ++c) {
                total[c] = total[c] + sum[r][4 * g + c];
                if (last && c < left) total[c] = finish_sum(total[c], bias, column + c, s.relu);
            }
            if (quad) {
                *reinterpret_cast<float4*>(to) = make_float4(total[0], total[1], total[2], total[3]);
            } else {
                LS_UNROLL for (int c = 0; c < 4; ++c) if (c < left) to[c] = total[c];
            }
        }
    }
}

// y [rows][columns] = sum over k of a [rows][k] b[k][columns], where b lies as [columns][depth] if kAlong.
template <class T, bool kAlong>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    k_blocked_sum(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias, float* y,
                  SumShape s) {
    LS_SHARED(float4, memory, T::kShape.slice_bytes / 16);
    const Slices<T> slices{reinterpret_cast<float*>(memory)};
    const TilePlace<T> tile(s.rows, s.columns);
    Place<T> place;
    const int begin = static_cast<int>(blockIdx.z) * s.depth_of_block, end = min(s.depth, begin + s.depth_of_block);
    SliceLoader<T, T::kRows, true> rows(a, s.depth, tile.row, s.rows, s.quads_rows, begin, end);
    SliceLoader<T, T::kColumns, kAlong> columns(b, kAlong ? s.depth : s.columns, tile.column, s.columns,
                                                s.quads_columns, begin, end);
    y += static_cast<int64_t>(blockIdx.z) * s.rows * s.columns;

    rows.load();
    columns.load();
    rows.store(slices.rows(0));
    columns.store(slices.columns(0));
    __syncthreads();
    Outputs<T> sum;
    clear<T>(sum);
    int buffer = 0;
    for (int chain = begin; chain < end; chain += kGemmChain) {
        const int chain_end = min(chain + kGemmChain, end);
        for (int k = chain; k < chain_end; k += T::kDepth) {
            const bool more = k + T::kDepth < end;
            if (more) {
                rows.load();
                columns.load();
            }
            multiply_slice<T>(slices, buffer, 0, min(T::kDepth, chain_end - k), place, sum);
            buffer ^= 1;
            if (more) {
                rows.store(slices.rows(buffer));
                columns.store(slices.columns(buffer));
            }
            __syncthreads();
        }
        close_chain<T>(s, tile, place, sum, chain == begin, chain_end == end, bias, y);
        clear<T>(sum);
        // Else the compiler keeps the address of every output in registers from here to the next chain's end, and the
        // chain has too few.
        place.row += s.nothing;
        place.column += s.nothing;
    }
}

// y = +0 + partial[0] + partial[1] + … in order, then bias and relu.
__global__ void __launch_bounds__(256)
    k_add_chains(const float* __restrict__ partial, const float* __restrict__ bias, float* __restrict__ y, int chains,
                 int64_t n, int columns, bool relu) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        float total = 0.0F;
        for (int chain = 0; chain < chains; ++chain) total = total + __ldg(partial + chain * n + i);
        y[i] = finish_sum(total, bias, static_cast<int>(i % columns), relu);
    }
}

struct SumOperands {
    const float *a, *b, *bias;
    float *y, *partial;
};

template <bool kAlong>
void blocked_sum(GemmWay way, SumShape s, const SumOperands& o, cudaStream_t stream) {
    if (s.rows == 0) return;
    const int chains = (s.depth + kGemmChain - 1) / kGemmChain;
    const bool split = way.split && chains > 1;
    const std::size_t rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns),
                      depth = static_cast<std::size_t>(s.depth), n = rows * columns;
    const bool relu = s.relu;
    const auto bias = in(o.bias, o.bias == nullptr ? 0 : columns), none = in(static_cast<const float*>(nullptr), 0);
    float* const to = split ? o.partial : o.y;
    s.depth_of_block = split ? kGemmChain : s.depth;
    s.quads_rows = in_quads(o.a, s.depth);
    s.quads_columns = in_quads(o.b, kAlong ? s.depth : s.columns);
    s.quads_out = in_quads(to, s.columns);
    s.relu = relu && !split;
    with_tile(way.tile, [&]<class T>() {
        const dim3 grid(tiles_of<T>(s.rows, s.columns), 1, static_cast<unsigned>(split ? chains : 1));
        launch(k_blocked_sum<T, kAlong>, grid, T::kThreads, 0, stream, in(o.a, rows * depth), in(o.b, columns * depth),
               split ? none : bias, out(to, split ? n * static_cast<std::size_t>(chains) : n), s);
    });
    if (!split) return;
    const auto blocks = static_cast<unsigned>(std::min<std::size_t>((n + 255) / 256, 4096));
    launch(k_add_chains, blocks, 256, 0, stream,
           in(static_cast<const float*>(to), n * static_cast<std::size_t>(chains)), bias, out(o.y, n), chains,
           static_cast<int64_t>(n), s.columns, relu);
}

}  // namespace

void gemm_forward(GemmWay way, int rows, int in, int out, const float* x, const float* w, const float* bias, bool relu,
                  float* y, float* partial, cudaStream_t stream) {
    blocked_sum<true>(way, {rows, out, in, 0, 0, false, false, false, relu}, {x, w, bias, y, partial}, stream);
}

void gemm_backward_data(GemmWay way, int rows, int in, int out, const float* dy, const float* w, float* dx,
                        float* partial, cudaStream_t stream) {
    blocked_sum<false>(way, {rows, in, out, 0, 0, false, false, false, false}, {dy, w, nullptr, dx, partial}, stream);
}

}  // namespace lockstep
