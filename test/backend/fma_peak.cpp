#include "fma_peak.hpp"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/fma_peak.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

double run_chains(int rounds) {
    const FloatTag d;
    const FloatVec a = hn::Set(d, 0.999F), b = hn::Set(d, 1e-3F);
    constexpr int kChains = 10;  // two pipes of four cycles need eight
    FloatVec chain[kChains];
    LOCKSTEP_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = hn::Set(d, 0.1F * static_cast<float>(i));
    const int64_t steps = int64_t{rounds} * 8192 / kChains;
    for (int64_t step = 0; step < steps; ++step) {
        LOCKSTEP_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = fma(chain[i], a, b);
    }
    FloatVec sum = chain[0];
    LOCKSTEP_UNROLL for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chain[i]);
    volatile float used = hn::GetLane(sum);  // the loop must not be dropped
    static_cast<void>(used);
    return 2.0 * kLanes * kChains * static_cast<double>(steps);
}

}  // namespace

constexpr double (*kRunChains)(int) = run_chains;

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {

// In the kernels' own namespace, where LOCKSTEP_PICK_TABLE looks for the targets.
static double run_chains_of(Isa isa, int rounds) {
    return LOCKSTEP_PICK_TABLE(isa, kRunChains, nullptr)(rounds);
}

namespace test {

double run_fma_chains(Isa isa, int rounds) {
    return run_chains_of(isa, rounds);
}

}  // namespace test
}  // namespace lockstep
#endif  // HWY_ONCE
