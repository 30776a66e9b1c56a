#include "backend/cpu/dense_forward_kernel.hpp"

#include <algorithm>

#include "backend/cpu/reference_gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/dense_forward_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

// As in gemm_kernel: 24 sums where there are 32 registers, 12 where there are 16, and wide tiles where samples fill
// them.
constexpr int kPanelVectors = kLanes == 8 ? 2 : 4;
constexpr GemmTileRows kTileRows{kLanes, 6, kLanes == 8 ? 6 : 12};
constexpr int64_t kLineFloats = 16;  // of a cache line

int panel_width(int samples) {
    return kLanes * (samples <= 2 * kLanes ? 2 : kPanelVectors);
}

struct Tile {
    const float* w;  // the first feature's row, at k = 0
    int64_t in;
    IndexRange k;       // one block
    const float* x;     // the panel, at k = 0
    int64_t width;      // of the panel
    float* partial;     // [R][width]
    const float* soon;  // what W the tile after this reads, at k.begin; of it, this panel fetches rows [0, rows_soon)
    int rows_soon;
    const float* bias;
    bool relu;
    float* y;  // the first sample's first feature
    int64_t out;
    int64_t samples;  // of the panel
};

// A tile as [feature][sample] becomes y's [sample][feature]: features in fours, turned in registers within 128 bits.
template <int R, int NV>
HWY_INLINE void store_transposed(const FloatVec (&acc)[R][NV], const Tile& t) {
    const FloatTag d;
    const hn::RepartitionToWide<FloatTag> pairs;
    const hn::FixedTag<float, 4> four;
    constexpr int kFours = R / 4;
    HWY_ALIGN float turned[kFours > 0 ? kFours * 4 : 1][kLanes];
    HWY_ALIGN float rest[R % 4 > 0 ? R % 4 : 1][kLanes];
    LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
        LOCKSTEP_UNROLL for (int f = 0; f < kFours; ++f) {
            const FloatVec a = acc[4 * f][v], b = acc[4 * f + 1][v], c = acc[4 * f + 2][v], e = acc[4 * f + 3][v];
            const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
            const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
            const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
            const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
            hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, turned[4 * f]);
            hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, turned[4 * f + 1]);
            hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, turned[4 * f + 2]);
            hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, turned[4 * f + 3]);
        }
        LOCKSTEP_UNROLL for (int r = 4 * kFours; r < R; ++r) hn::Store(acc[r][v], d, rest[r - 4 * kFours]);
        const int64_t samples = std::min<int64_t>(kLanes, t.samples - v * kLanes);
        for (int64_t j = 0; j < samples; ++j) {
            float* y = t.y + (v * kLanes + j) * t.out;
            LOCKSTEP_UNROLL for (int f = 0; f < kFours; ++f)
                hn::StoreU(hn::Load(four, turned[4 * f + j % 4] + j / 4 * 4), four, y + 4 * f);
            LOCKSTEP_UNROLL for (int r = 4 * kFours; r < R; ++r) y[r] = rest[r - 4 * kFours][j];
        }
    }
}

template <int R, int NV>
HWY_INLINE void run_tile(const Tile& t) {
    const FloatTag d;
    const FloatVec zero = hn::Zero(d);
    FloatVec acc[R][NV];
    const float* rows[R];
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
        rows[r] = t.w + r * t.in;
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = zero;
    }
    const float* x = t.x + t.k.begin * t.width;
    // Rows of W are too short in a block for the processor to see them coming. The sums so far come a row at a time:
    // all at once they would hold up the loads of X.
    const float* soon = t.soon;
    const float* sums = t.partial;
    const float* const sums_end = t.k.begin > 0 ? sums + R * t.width : sums;
    for (int64_t k = t.k.begin; k < t.k.end; soon += kLineFloats) {
        for (int r = 0; r < t.rows_soon; ++r) __builtin_prefetch(soon + r * t.in, 0, 2);
        if (sums < sums_end) {
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) __builtin_prefetch(sums + v * kLanes, 1, 3);
            sums += t.width;
        }
        for (const int64_t end = std::min(t.k.end, k + kLineFloats); k < end; ++k, x += t.width) {
            FloatVec xv[NV];
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) xv[v] = hn::LoadU(d, x + v * kLanes);
            LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
                const FloatVec w = hn::Set(d, rows[r][k]);
                LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(w, xv[v], acc[r][v]);
            }
        }
    }
    if (t.k.begin > 0) {
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] =
            hn::Add(hn::Load(d, t.partial + r * t.width + v * kLanes), acc[r][v]);
    }
    if (t.k.end < t.in) {
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v)
            hn::Store(acc[r][v], d, t.partial + r * t.width + v * kLanes);
        return;
    }
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
        acc[r][v] = hn::Add(acc[r][v], zero);  // total = +0 + block turns a -0 into +0
        if (t.bias != nullptr) acc[r][v] = hn::Add(acc[r][v], hn::Set(d, t.bias[r]));
        if (t.relu) acc[r][v] = hn::IfThenZeroElse(hn::Le(acc[r][v], zero), acc[r][v]);
    }
    store_transposed(acc, t);
}

template <int R>
HWY_INLINE void run_samples(const Tile& t) {
    if constexpr (kPanelVectors == 4 && R <= kTileRows.wide) {
        if (t.samples > 3 * kLanes) return run_tile<R, 4>(t);
        if (t.samples > 2 * kLanes) return run_tile<R, 3>(t);
    }
    if (t.samples > kLanes) return run_tile<R, 2>(t);
    run_tile<R, 1>(t);
}

template <int R>
HWY_NOINLINE void run_panels(Tile t, int64_t samples, int rows_soon) {
    const int panels = static_cast<int>((samples + t.width - 1) / t.width);
    const float* const soon = t.soon;
    for (int p = 0; p < panels; ++p) {
        const int first_soon = p * rows_soon / panels;
        t.soon = soon + first_soon * t.in;
        t.rows_soon = (p + 1) * rows_soon / panels - first_soon;
        t.samples = samples - p * t.width;
        run_samples<R>(t);
        t.x += t.in * t.width;
        t.y += t.width * t.out;
        t.partial += R * t.width;
    }
}

using RunPanels = void (*)(Tile, int64_t, int);
constexpr RunPanels kRunPanels[] = {
    nullptr,       run_panels<1>, run_panels<2>, run_panels<3>,  run_panels<4>,  run_panels<5>, run_panels<6>,
#if HWY_TARGET != HWY_AVX2
    run_panels<7>, run_panels<8>, run_panels<9>, run_panels<10>, run_panels<11>, run_panels<12>
#endif
};

void run(const float* w, int64_t in, int64_t out, IndexRange outputs, const float* x, int64_t samples,
         const float* bias, bool relu, float* y, float* partial) {
    const int64_t width = panel_width(static_cast<int>(samples)), height = kTileRows.of(static_cast<int>(samples));
    const int64_t partial_stride = height * ((samples + width - 1) / width * width);
    for (int64_t begin = 0; begin < in; begin += kChainTerms) {
        const IndexRange block{begin, std::min<int64_t>(in, begin + kChainTerms)};
        int64_t tile = 0;
        for (int64_t o = outputs.begin; o < outputs.end; o += height, ++tile) {
            const int64_t rows = std::min(height, outputs.end - o), next = o + rows;
            const bool more = next < outputs.end;
            const float* soon = more ? w + next * in + begin : w + outputs.begin * in + block.end;
            const int64_t rows_soon = more             ? std::min(height, outputs.end - next)
                                      : block.end < in ? std::min(height, outputs.end - outputs.begin)
                                                       : 0;
            kRunPanels[rows]({w + o * in, in, block, x, width, partial + tile * partial_stride, soon, 0,
                              bias == nullptr ? nullptr : bias + o, relu, y + o, out, 0},
                             samples, static_cast<int>(rows_soon));
        }
    }
}

}  // namespace

constexpr DenseForwardKernels kDenseForward{panel_width, kTileRows, run};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr DenseForwardKernels kNone{};

}  // namespace

const DenseForwardKernels& dense_forward_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kDenseForward, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
