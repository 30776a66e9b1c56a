#include "backend/cpu/gemm_kernel.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm_kernel.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "backend/cpu/simd.hpp"
#include "hwy/cache_control.h"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

// 24 sums where there are 32 registers, 12 where there are 16: 6 rows of a whole panel, and 11 where the columns fill
// no more than half of one (as many pointers to rows as there are registers for). Each term costs a load for every row
// and every vector of columns, so a wide tile of few rows waits for its loads the least.
constexpr int kPanelVectors = kLanes == 8 ? 2 : 4;
constexpr GemmTileRows kTileRows{kLanes, 6, kLanes == 8 ? 6 : 11};

// One tile of one block: what changes from call to call.
struct TileInput {
    const float* a;
    const int32_t* a_rows;
    const GemmSegment* segments;
    int segment_count;
    const int32_t* offsets;  // or null
    int offset_count;
    const float* b;  // the tile's first panel
    int64_t ldb;
    int64_t panel_stride;
    int first_k;
};
struct TileOutput {
    float* c;
    const int32_t* c_rows;
    const float* bias;
    int columns;
    bool first, last, relu;
};

// acc[r][v] += A[row r][a_at(k)] * B[k][v] over `count` terms.
template <int R, int NV, class Offset>
HWY_INLINE void accumulate(FloatVec (&acc)[R][NV], const float* const (&rows)[R], const float* b, int64_t ldb,
                           int64_t panel_stride, int64_t count, Offset a_at) {
    const FloatTag d;
    const auto add_term = [&](int64_t k) LOCKSTEP_LAMBDA {
        const int64_t at = a_at(k);
        FloatVec bv[NV];
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) bv[v] =
            hn::LoadU(d, b + (v / kPanelVectors) * panel_stride + (v % kPanelVectors) * kLanes);
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
            const FloatVec x = hn::Set(d, rows[r][at]);
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(x, bv[v], acc[r][v]);
        }
        b += ldb;
    };
    if constexpr (R > kTileRows.wide) {  // here, steps of the loop would take turns that the products need
        _Pragma("GCC unroll 4") for (int64_t k = 0; k < count; ++k) add_term(k);
    } else {
        for (int64_t k = 0; k < count; ++k) add_term(k);
    }
}

// NV may span two whole panels.
template <int R, int NV>
HWY_INLINE void run_tile(const TileInput& in, const TileOutput& out) {
    const FloatTag d;
    const FloatVec zero = hn::Zero(d);
    FloatVec acc[R][NV];
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
            if (v * kLanes % 16 == 0 || v == NV - 1) hwy::Prefetch(out.c + out.c_rows[r] + v * kLanes);
            acc[r][v] = zero;
        }
    }
    const float* rows[R];
    if (in.offsets != nullptr) {
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) rows[r] = in.a + in.a_rows[r];
        const int32_t* offsets = in.offsets;
        accumulate(acc, rows, in.b, in.ldb, in.panel_stride, in.offset_count,
                   [offsets](int64_t k) LOCKSTEP_LAMBDA { return offsets[k]; });
    } else {
        for (int s = 0; s < in.segment_count; ++s) {
            const GemmSegment segment = in.segments[s];
            LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) rows[r] = in.a + (in.a_rows[r] + segment.a);
            accumulate(acc, rows, in.b + (segment.k - in.first_k) * in.ldb, in.ldb, in.panel_stride, segment.length,
                       [](int64_t k) LOCKSTEP_LAMBDA { return k; });
        }
    }
    const bool whole = out.columns >= NV * kLanes;
    const auto load_at = [&](const float* p, int v) LOCKSTEP_LAMBDA {
        return whole ? hn::LoadU(d, p + v * kLanes) : load(p + v * kLanes, out.columns - v * kLanes);
    };
    if (!out.first) {
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] =
            hn::Add(load_at(out.c + out.c_rows[r], v), acc[r][v]);
    }
    if (out.last) {
        // total = +0 + block turns a -0 into +0. Adding +0 to the bias instead, and that to the sum, gives the same
        // bits.
        FloatVec bias[NV];
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) bias[v] =
            out.bias == nullptr ? zero : hn::Add(load_at(out.bias, v), zero);
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
            acc[r][v] = hn::Add(acc[r][v], bias[v]);
            if (out.relu) acc[r][v] = hn::IfThenZeroElse(hn::Le(acc[r][v], zero), acc[r][v]);
        }
    }
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
        float* p = out.c + out.c_rows[r] + v * kLanes;
        if (whole) {
            hn::StoreU(acc[r][v], d, p);
        } else {
            store(acc[r][v], p, out.columns - v * kLanes);
        }
    }
}

// One tile of rows and one block, over panels [begin, end).
template <int R>
HWY_NOINLINE void run_rows(const GemmPlan& plan, TileInput in, TileOutput out, const GemmPanels& b, int width,
                           IndexRange panels) {
    float* const c = out.c;
    const float* const bias = out.bias;
    const auto go_to = [&](int64_t p) LOCKSTEP_LAMBDA {
        in.b = b.b + (p - b.first_panel) * b.panel_stride;
        out.c = c + p * width;
        out.bias = bias == nullptr ? nullptr : bias + p * width;
        out.columns = plan.n - static_cast<int>(p) * width;
    };
    int64_t p = panels.begin;
    if constexpr (kPanelVectors == 2 && R <= 4) {  // few rows: two panels at a time, or too few chains would be under
                                                   // way to hide the fma's latency
        for (; width == 2 * kLanes && p + 2 <= panels.end && (p + 2) * width <= plan.n; p += 2) {
            go_to(p);
            run_tile<R, 4>(in, out);
        }
    }
    for (; p < panels.end; ++p) {
        go_to(p);
        if constexpr (kPanelVectors == 4 && R <= 6) {
            if (out.columns > 3 * kLanes) {
                run_tile<R, 4>(in, out);
                continue;
            }
            if (out.columns > 2 * kLanes) {
                run_tile<R, 3>(in, out);
                continue;
            }
        }
        if (out.columns > kLanes) {
            run_tile<R, 2>(in, out);
        } else {
            run_tile<R, 1>(in, out);
        }
    }
}

using RunRows = void (*)(const GemmPlan&, TileInput, TileOutput, const GemmPanels&, int, IndexRange);
constexpr RunRows kRunRows[] = {nullptr,     run_rows<1>, run_rows<2>, run_rows<3>,  run_rows<4>, run_rows<5>,
                                run_rows<6>,
#if HWY_TARGET != HWY_AVX2
                                run_rows<7>, run_rows<8>, run_rows<9>, run_rows<10>, run_rows<11>
#endif
};

int panel_width(int n) {
    return kLanes * (n <= kLanes ? 1 : n <= 2 * kLanes ? 2 : kPanelVectors);
}

void run(const GemmPlan& plan, const float* a, const GemmPanels& b, const GemmOutput& output, const GemmRange& range) {
    const int width = panel_width(plan.n);
    const auto per_group = static_cast<int64_t>(plan.full.tiles.size());
    int64_t group = per_group > 0 ? std::min(range.tiles.begin / per_group, plan.full_groups) : 0;
    int64_t at = range.tiles.begin - group * per_group;
    for (int64_t t = range.tiles.begin; t < range.tiles.end; ++t, ++at) {
        if (group < plan.full_groups && at == per_group) {
            ++group;
            at = 0;
        }
        const GemmGroup& rows = group < plan.full_groups ? plan.full : plan.rest;
        const GemmTile& tile = rows.tiles[static_cast<std::size_t>(at)];
        const GemmClass& cls = plan.classes[static_cast<std::size_t>(tile.cls)];
        for (int64_t block = range.blocks.begin; block < range.blocks.end; ++block) {
            const int32_t begin = cls.block_begin[static_cast<std::size_t>(block)];
            const int32_t count = cls.block_begin[static_cast<std::size_t>(block) + 1] - begin;
            const bool first = block == cls.first_block;
            if (count == 0 && !first) continue;  // a row without any term is written by its block 0
            const TileInput in{a + group * plan.a_stride,
                               rows.a.data() + tile.first_row,
                               cls.segments.data() + begin,
                               count,
                               cls.offsets.empty() ? nullptr : cls.offsets.data(),
                               static_cast<int>(cls.offsets.size()),
                               nullptr,
                               b.ldb,
                               b.panel_stride,
                               b.first_k};
            const TileOutput out{output.c + group * plan.c_stride,
                                 rows.c.data() + tile.first_row,
                                 output.bias,
                                 0,
                                 first,
                                 block == cls.last_block,
                                 output.relu};
            kRunRows[tile.rows](plan, in, out, b, width, range.panels);
        }
    }
}

}  // namespace

constexpr GemmKernels kGemmKernels{&panel_width, kTileRows, &run};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr GemmKernels kNone{};

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kGemmKernels, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
