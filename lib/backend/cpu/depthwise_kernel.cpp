#include "backend/cpu/depthwise_kernel.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/depthwise_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

// R pixels of one class, one vector of channels.
template <int R>
HWY_NOINLINE void run_tile(const GemmClass& cls, int64_t channels, const float* a, const int32_t* a_rows,
                           const float* w, const GemmOutput& out, float* c, const int32_t* c_rows) {
    const FloatTag d;
    const FloatVec zero = hn::Zero(d);
    for (int64_t channel = 0; channel < channels; channel += kLanes) {
        const int64_t lanes = channels - channel;
        const bool whole = lanes >= kLanes;
        const auto load_at = [&](const float* p) LOCKSTEP_LAMBDA { return whole ? hn::LoadU(d, p) : load(p, lanes); };
        FloatVec total[R], acc[R];
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) total[r] = zero;
        for (std::size_t block = 0; block + 1 < cls.block_begin.size(); ++block) {
            LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) acc[r] = zero;
            for (int32_t s = cls.block_begin[block]; s < cls.block_begin[block + 1]; ++s) {
                const GemmSegment segment =
                    cls.segments[static_cast<std::size_t>(s)];  // of one term: channels lie between taps
                const FloatVec tap = load_at(w + segment.k * channels + channel);
                LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) acc[r] =
                    fma(load_at(a + (a_rows[r] + segment.a) + channel), tap, acc[r]);
            }
            LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) total[r] = hn::Add(total[r], acc[r]);
        }
        const FloatVec bias = out.bias == nullptr ? zero : load_at(out.bias + channel);
        LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
            if (out.bias != nullptr) total[r] = hn::Add(total[r], bias);
            if (out.relu) total[r] = hn::IfThenZeroElse(hn::Le(total[r], zero), total[r]);
            store(total[r], c + c_rows[r] + channel, lanes);
        }
    }
}

using RunTile = void (*)(const GemmClass&, int64_t, const float*, const int32_t*, const float*, const GemmOutput&,
                         float*, const int32_t*);
constexpr RunTile kRunTile[] = {nullptr,      run_tile<1>,  run_tile<2>, run_tile<3>, run_tile<4>,
                                run_tile<5>,  run_tile<6>,  run_tile<7>, run_tile<8>, run_tile<9>,
                                run_tile<10>, run_tile<11>, run_tile<12>};

void run(const GemmPlan& plan, int64_t channels, const float* a, const float* w, const GemmOutput& out,
         IndexRange tiles) {
    const auto per_group = static_cast<int64_t>(plan.full.tiles.size());
    for (int64_t t = tiles.begin; t < tiles.end; ++t) {
        const int64_t group = per_group > 0 ? std::min(t / per_group, plan.full_groups) : 0;
        const GemmGroup& rows = group < plan.full_groups ? plan.full : plan.rest;
        const GemmTile& tile = rows.tiles[static_cast<std::size_t>(t - group * per_group)];
        kRunTile[tile.rows](plan.classes[static_cast<std::size_t>(tile.cls)], channels, a + group * plan.a_stride,
                            rows.a.data() + tile.first_row, w, out, out.c + group * plan.c_stride,
                            rows.c.data() + tile.first_row);
    }
}

}  // namespace

constexpr DepthwiseKernels kDepthwise{run};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr DepthwiseKernels kNone{};

}  // namespace

const DepthwiseKernels& depthwise_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kDepthwise, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
