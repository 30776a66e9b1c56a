#include "backend/cpu/dense_wgrad_kernel.hpp"

#include <algorithm>

#include "backend/cpu/reference_gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/dense_wgrad_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

constexpr int kTileRows = kLanes == 8 ? 6 : 8;
constexpr int64_t kWidth = 2 * kLanes;
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

template <int R, int NV>
HWY_INLINE void run_tile(const FoldProgram& fold, const DenseWgradOperands& operands, const float* dy, const float* x,
                         int64_t first_out, int64_t first_in) {
    const FloatTag d;
    HWY_ALIGN float stack[kMaxFoldStack][R * NV * kLanes];
    HWY_ALIGN float partial[R * NV * kLanes];
    int depth = 0;
    const int64_t columns = operands.in - first_in;
    FloatVec acc[R][NV];
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        const int64_t samples = leaf.end - leaf.begin;
        run_chain(acc, dy, x, leaf.begin, leaf.begin + std::min<int64_t>(samples, kChainTerms));
        for (int64_t done = kChainTerms; done < samples; done += kChainTerms) {
            keep(acc, partial);
            run_chain(acc, dy, x, leaf.begin + done, leaf.begin + std::min<int64_t>(samples, done + kChainTerms));
            add_to(acc, partial);
        }
        for (int add = 0; add < leaf.adds; ++add) add_to(acc, stack[--depth]);
        if (leaf.root < 0) {
            keep(acc, stack[depth++]);
            continue;
        }
        float* dw = operands.dw[static_cast<std::size_t>(leaf.root)] + first_out * operands.in + first_in;
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
            float* p = dw + r * operands.in + v * kLanes;
            if (columns >= NV * kLanes) {
                hn::StoreU(acc[r][v], d, p);
            } else {
                store(acc[r][v], p, columns - v * kLanes);
            }
        }
    }
}

template <int R>
HWY_NOINLINE void run_panels(const FoldProgram& fold, const DenseWgradOperands& operands, int64_t dy_panel,
                             IndexRange x_panels) {
    const float* dy = operands.dy + dy_panel * fold.rows * kTileRows;
    for (int64_t p = x_panels.begin; p < x_panels.end; ++p) {
        const float* x = operands.x + p * fold.rows * kWidth;
        if (operands.in - p * kWidth > kLanes) {
            run_tile<R, 2>(fold, operands, dy, x, dy_panel * kTileRows, p * kWidth);
        } else {
            run_tile<R, 1>(fold, operands, dy, x, dy_panel * kTileRows, p * kWidth);
        }
    }
}

using RunPanels = void (*)(const FoldProgram&, const DenseWgradOperands&, int64_t, IndexRange);
constexpr RunPanels kRunPanels[] = {nullptr,       run_panels<1>, run_panels<2>, run_panels<3>, run_panels<4>,
                                    run_panels<5>, run_panels<6>, run_panels<7>, run_panels<8>};

void run(const FoldProgram& fold, const DenseWgradOperands& operands, IndexRange dy_panels, IndexRange x_panels) {
    if (fold.leaves.empty()) return;
    const int64_t panel_bytes = fold.rows * kWidth * static_cast<int64_t>(sizeof(float));
    const int64_t block = std::max<int64_t>(1, kBlockBytes / panel_bytes);
    for (int64_t begin = x_panels.begin; begin < x_panels.end; begin += block) {
        const IndexRange x_block{begin, std::min(x_panels.end, begin + block)};
        for (int64_t p = dy_panels.begin; p < dy_panels.end; ++p) {
            kRunPanels[std::min<int64_t>(kTileRows, operands.out - p * kTileRows)](fold, operands, p, x_block);
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

const DenseWgradKernels& dense_wgrad_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kDenseWgrad, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
