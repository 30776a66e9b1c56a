#include "backend/cpu/dense_wgrad_kernel.hpp"

#include <algorithm>

#include "backend/cpu/reference_gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/dense_wgrad_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"
#include "hwy/cache_control.h"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

// Every sample costs a load for each vector of X and a broadcast for each row of dY: 10 loads for 24 products where
// there are 32 registers (an 8 x 2 tile has 10 for 16 and waits for its loads), 8 for 12 where there are 16.
constexpr int kTileRows = 6;
constexpr int kTileVectors = kLanes == 8 ? 2 : 4;
constexpr int64_t kWidth = kTileVectors * kLanes;
constexpr int64_t kBlockBytes = 384 * 1024;  // of X panels that stay in the second-level cache while dY panels pass

// acc[r][v] = one chain over samples [begin, end).
template <int R, int NV>
HWY_INLINE void run_chain(FloatVec (&acc)[R][NV], const float* dy, const float* x, int64_t begin, int64_t end) {
    const FloatTag d;
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(d);
    dy += begin * kTileRows;
    x += begin * kWidth;
    for (int64_t n = begin; n < end; ++n, dy += kTileRows, x += kWidth) {
        FloatVec xv[NV];
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) xv[v] = hn::LoadU(d, x + v * kLanes);
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
            const FloatVec a = hn::Set(d, dy[r]);
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(a, xv[v], acc[r][v]);
        }
    }
}

template <int R, int NV>
HWY_INLINE void add_to(FloatVec (&acc)[R][NV], const float* left) {  // acc = left + acc
    const FloatTag d;
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] =
        hn::Add(hn::Load(d, left + (r * NV + v) * kLanes), acc[r][v]);
}

template <int R, int NV>
HWY_INLINE void keep(const FloatVec (&acc)[R][NV], float* tile) {
    const FloatTag d;
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v)
        hn::Store(acc[r][v], d, tile + (r * NV + v) * kLanes);
}

// The tile at the right end of dW: columns beyond it are not written.
template <int R, int NV>
HWY_NOINLINE void store_part(const float* tile, float* dw, int64_t stride, int64_t columns) {
    const FloatTag d;
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < NV; ++v)
            store(hn::Load(d, tile + (r * NV + v) * kLanes), dw + r * stride + v * kLanes, columns - v * kLanes);
    }
}

template <int R, int NV>
HWY_INLINE void run_tile(const FoldProgram& chains, const DenseWgradOperands& operands, const float* dy, const float* x,
                         int64_t first_out, int64_t first_in) {
    const FloatTag d;
    HWY_ALIGN float stack[kMaxFoldStack + 1][R * NV * kLanes];
    int depth = 0;
    const int64_t stride = operands.in, columns = operands.in - first_in, at = first_out * stride + first_in;
    // The output tile's lines come while the chains run, a few rows each: all at once they would hold up the loads.
    const float* soon = operands.dw.front() + at;
    const int rows_soon = (R + static_cast<int>(chains.leaves.size()) - 1) / static_cast<int>(chains.leaves.size());
    const float* const soon_end = soon + R * stride;
    for (const FoldProgram::Leaf& chain : chains.leaves) {
        for (int r = 0; r < rows_soon && soon < soon_end; ++r, soon += stride)
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) hwy::Prefetch(soon + v * kLanes);
        FloatVec acc[R][NV];
        run_chain(acc, dy, x, chain.begin, chain.end);
        for (int add = 0; add < chain.adds; ++add) add_to(acc, stack[--depth]);
        if (chain.root < 0) {
            keep(acc, stack[depth++]);
            continue;
        }
        float* dw = operands.dw[static_cast<std::size_t>(chain.root)] + at;
        if (columns < NV * kLanes) {
            keep(acc, stack[0]);
            store_part<R, NV>(stack[0], dw, stride, columns);
            continue;
        }
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v)
            hn::StoreU(acc[r][v], d, dw + r * stride + v * kLanes);
    }
}

template <int R>
HWY_NOINLINE void run_panels(const FoldProgram& chains, const DenseWgradOperands& operands, int64_t dy_panel,
                             IndexRange x_panels) {
    const float* dy = operands.dy + dy_panel * chains.rows * kTileRows;
    for (int64_t p = x_panels.begin; p < x_panels.end; ++p) {
        const float* x = operands.x + p * chains.rows * kWidth;
        const int64_t first_out = dy_panel * kTileRows, first_in = p * kWidth;
        const int64_t columns = operands.in - first_in;
        if constexpr (kTileVectors == 4) {
            if (columns > 3 * kLanes) {
                run_tile<R, 4>(chains, operands, dy, x, first_out, first_in);
                continue;
            }
            if (columns > 2 * kLanes) {
                run_tile<R, 3>(chains, operands, dy, x, first_out, first_in);
                continue;
            }
        }
        if (columns > kLanes) {
            run_tile<R, 2>(chains, operands, dy, x, first_out, first_in);
        } else {
            run_tile<R, 1>(chains, operands, dy, x, first_out, first_in);
        }
    }
}

using RunPanels = void (*)(const FoldProgram&, const DenseWgradOperands&, int64_t, IndexRange);
constexpr RunPanels kRunPanels[] = {nullptr,       run_panels<1>, run_panels<2>, run_panels<3>,
                                    run_panels<4>, run_panels<5>, run_panels<6>};

void run(const FoldProgram& chains, const DenseWgradOperands& operands, IndexRange dy_panels, IndexRange x_panels) {
    if (chains.leaves.empty()) return;
    const int64_t panel_bytes = chains.rows * kWidth * static_cast<int64_t>(sizeof(float));
    const int64_t block = std::max<int64_t>(1, kBlockBytes / panel_bytes);
    for (int64_t begin = x_panels.begin; begin < x_panels.end; begin += block) {
        const IndexRange x_block{begin, std::min(x_panels.end, begin + block)};
        for (int64_t p = dy_panels.begin; p < dy_panels.end; ++p) {
            kRunPanels[std::min<int64_t>(kTileRows, operands.out - p * kTileRows)](chains, operands, p, x_block);
        }
    }
}

}  // namespace

constexpr DenseWgradKernels kDenseWgrad{kTileRows, static_cast<int>(kWidth), run};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr DenseWgradKernels kNone{};

}  // namespace

FoldProgram chains_of(const FoldProgram& fold) {
    FoldProgram chains = fold;
    chains.leaves.clear();
    chains.stack = fold.stack + 1;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        for (int begin = leaf.begin; begin < leaf.end; begin += kChainTerms) {
            const int end = std::min(leaf.end, begin + kChainTerms);
            const int joined = begin > leaf.begin ? 1 : 0;  // to the blocks before it
            chains.leaves.push_back(
                {leaf.shard, begin, end, joined + (end == leaf.end ? leaf.adds : 0), end == leaf.end ? leaf.root : -1});
        }
    }
    return chains;
}

const DenseWgradKernels& dense_wgrad_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kDenseWgrad, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
