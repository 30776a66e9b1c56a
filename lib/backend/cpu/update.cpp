// The weight update and the sums behind the gradient norm: one pass over flat arrays, bound by memory for large
// networks.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/update.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

/// g = G / divisor, then fma(l2, w, g): what the norm and the update both start from.
struct ScaledGradient {
    bool divides, decays;
    FloatVec divisor, l2;

    HWY_INLINE FloatVec operator()(FloatVec total, FloatVec w) const {
        FloatVec g = divides ? hn::Div(total, divisor) : total;
        if (decays) g = fma(l2, w, g);
        return g;
    }
};

HWY_INLINE ScaledGradient scaled_gradient(float divisor, float l2) {
    const FloatTag d;
    return {divisor != 1.0F, l2 != 0.0F, hn::Set(d, divisor), hn::Set(d, l2)};
}

template <OptimizerKind kKind>
HWY_INLINE void update_as(const UpdateParams& p, int64_t n, const float* gradient, float* w, float* slot0,
                          float* slot1) {
    const FloatTag d;
    const ScaledGradient scaled = scaled_gradient(p.divisor, p.l2);
    const bool clips = p.clip_active;
    const bool decays = p.weight_decay != 0.0F && kKind != OptimizerKind::kAdamW;
    const FloatVec clip = hn::Set(d, p.clip), decay = hn::Set(d, p.weight_decay), minus_lr = hn::Set(d, -p.lr);
    const FloatVec momentum = hn::Set(d, p.momentum), beta1 = hn::Set(d, p.beta1), beta2 = hn::Set(d, p.beta2);
    const FloatVec rest1 = hn::Set(d, p.one_minus_beta1), rest2 = hn::Set(d, p.one_minus_beta2);
    const FloatVec correction1 = hn::Set(d, p.correction1), correction2 = hn::Set(d, p.correction2);
    const FloatVec epsilon = hn::Set(d, p.epsilon), decay_factor = hn::Set(d, p.decay_factor);
    for_each_vector(n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
        FloatVec weight = load(w + i, lanes);
        FloatVec g = scaled(load(gradient + i, lanes), weight);
        if (clips) g = hn::Mul(g, clip);
        if (decays) g = fma(decay, weight, g);
        if constexpr (kKind == OptimizerKind::kSgd) {
            weight = fma(minus_lr, g, weight);
        } else if constexpr (kKind == OptimizerKind::kMomentum || kKind == OptimizerKind::kNesterov) {
            const FloatVec v = fma(momentum, load(slot0 + i, lanes), g);
            store(v, slot0 + i, lanes);
            weight = fma(minus_lr, kKind == OptimizerKind::kMomentum ? v : fma(momentum, v, g), weight);
        } else {
            if (kKind == OptimizerKind::kAdamW) weight = hn::Mul(weight, decay_factor);
            const FloatVec m = fma(beta1, load(slot0 + i, lanes), hn::Mul(rest1, g));
            const FloatVec v = fma(beta2, load(slot1 + i, lanes), hn::Mul(rest2, hn::Mul(g, g)));
            store(m, slot0 + i, lanes);
            store(v, slot1 + i, lanes);
            const FloatVec root = hn::Add(hn::Sqrt(hn::Div(v, correction2)), epsilon);
            weight = fma(minus_lr, hn::Div(hn::Div(m, correction1), root), weight);
        }
        store(weight, w + i, lanes);
    });
}

void update(const UpdateParams& p, int64_t n, const float* gradient, float* w, float* slot0, float* slot1) {
    switch (p.kind) {
        case OptimizerKind::kSgd:
            return update_as<OptimizerKind::kSgd>(p, n, gradient, w, slot0, slot1);
        case OptimizerKind::kMomentum:
            return update_as<OptimizerKind::kMomentum>(p, n, gradient, w, slot0, slot1);
        case OptimizerKind::kNesterov:
            return update_as<OptimizerKind::kNesterov>(p, n, gradient, w, slot0, slot1);
        case OptimizerKind::kAdam:
            return update_as<OptimizerKind::kAdam>(p, n, gradient, w, slot0, slot1);
        case OptimizerKind::kAdamW:
            return update_as<OptimizerKind::kAdamW>(p, n, gradient, w, slot0, slot1);
    }
}

/// The 16 chains lie side by side in registers; elements past the end load as 0 and leave their chain alone.
void block_square_sums(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums) {
    const FloatTag d;
    const hn::Half<FloatTag> half;
    using DoubleTag = hn::Repartition<double, FloatTag>;
    const DoubleTag dd;
    constexpr int kGroups = 16 / kLanes;  // vectors of floats, each two vectors of doubles
    const ScaledGradient scaled = scaled_gradient(divisor, l2);
    for (int64_t begin = 0; begin < n; begin += kSquareBlock, ++sums) {
        const int64_t end = std::min(begin + kSquareBlock, n);
        hn::Vec<DoubleTag> chain[kGroups][2];
        for (auto& pair : chain) pair[0] = pair[1] = hn::Zero(dd);
        const auto add_group = [&](int64_t at, int64_t lanes, hn::Vec<DoubleTag>(&pair)[2]) LOCKSTEP_LAMBDA {
            const FloatVec weight = scaled.decays ? load(w + at, lanes) : hn::Zero(d);
            const FloatVec g = scaled(load(gradient + at, lanes), weight);
            const auto low = hn::PromoteTo(dd, hn::LowerHalf(half, g));
            const auto high = hn::PromoteTo(dd, hn::UpperHalf(half, g));
            pair[0] = hn::MulAdd(low, low, pair[0]);
            pair[1] = hn::MulAdd(high, high, pair[1]);
        };
        int64_t i = begin;
        for (; i + 16 <= end; i += 16) {
            for (int group = 0; group < kGroups; ++group) add_group(i + group * kLanes, kLanes, chain[group]);
        }
        for (int group = 0; group < kGroups && i < end; ++group, i += kLanes) add_group(i, end - i, chain[group]);
        HWY_ALIGN double folded[16];
        for (int group = 0; group < kGroups; ++group) {
            hn::Store(chain[group][0], dd, folded + group * kLanes);
            hn::Store(chain[group][1], dd, folded + group * kLanes + kLanes / 2);
        }
        for (int width = 8; width > 0; width /= 2) {
            for (int k = 0; k < width; ++k) folded[k] = folded[k] + folded[k + width];
        }
        *sums = folded[0];
    }
}

}  // namespace

constexpr UpdateKernels kUpdate = {block_square_sums, update};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr UpdateKernels kScalarUpdate = {reference::block_square_sums, reference::update};

}  // namespace

const UpdateKernels& update_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kUpdate, kScalarUpdate);
}

}  // namespace lockstep
#endif  // HWY_ONCE
