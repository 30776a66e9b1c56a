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

/// The parameters of an update in every lane, and the parts that its kinds share.
struct UpdateLanes {
    ScaledGradient scaled;
    bool clips, decays, epsilon_inside;
    FloatVec clip, decay, lr, minus_lr, momentum, beta1, beta2, rest1, rest2, correction1, correction2, epsilon,
        decay_factor, trust;

    /// The divisor of adagrad and rmsprop.
    HWY_INLINE FloatVec root(FloatVec s) const {
        return epsilon_inside ? hn::Sqrt(hn::Add(s, epsilon)) : hn::Add(hn::Sqrt(s), epsilon);
    }
    HWY_INLINE FloatVec mean_square(FloatVec s, FloatVec g) const {
        return fma(beta2, s, hn::Mul(rest2, hn::Mul(g, g)));
    }
    /// Adam's step for a learning rate of 1, without decay.
    HWY_INLINE FloatVec adam_direction(FloatVec m, FloatVec v) const {
        const FloatVec divisor = hn::Add(hn::Sqrt(hn::Div(v, correction2)), epsilon);
        return hn::Div(hn::Div(m, correction1), divisor);
    }
};

HWY_INLINE UpdateLanes lanes_of(const UpdateParams& p) {
    const FloatTag d;
    const auto all = [&](float value) LOCKSTEP_LAMBDA { return hn::Set(d, value); };
    return {scaled_gradient(p.divisor, p.l2),
            p.clip_active,
            p.weight_decay != 0.0F,
            p.epsilon_inside,
            all(p.clip),
            all(p.weight_decay),
            all(p.lr),
            all(-p.lr),
            all(p.momentum),
            all(p.beta1),
            all(p.beta2),
            all(p.one_minus_beta1),
            all(p.one_minus_beta2),
            all(p.correction1),
            all(p.correction2),
            all(p.epsilon),
            all(p.decay_factor),
            all(p.trust)};
}

/// body(i, lanes) for every vector of [0, n), four runs of a page side by side: one run of each array alone leaves a
/// sixth of the memory's speed unused.
template <class Body>
HWY_INLINE void for_each_vector_in_runs(int64_t n, Body body) {
    constexpr int64_t kRun = 1024, kRuns = 4;
    int64_t begin = 0;
    for (; begin + kRuns * kRun <= n; begin += kRuns * kRun) {
        for (int64_t i = begin; i < begin + kRun; i += kLanes) {
            for (int64_t run = 0; run < kRuns; ++run) body(i + run * kRun, int64_t{kLanes});
        }
    }
    for_each_vector(n - begin, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA { body(begin + i, lanes); });
}

template <OptimizerKind kKind>
HWY_INLINE void update_as(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0,
                          float* slot1, float* direction) {
    using Kind = OptimizerKind;
    const UpdateLanes p = lanes_of(params);
    for_each_vector_in_runs(n, [&](int64_t i, int64_t lanes) LOCKSTEP_LAMBDA {
        FloatVec weight = load(w + i, lanes);
        FloatVec g = p.scaled(load(gradient + i, lanes), weight);
        if (p.clips) g = hn::Mul(g, p.clip);
        if (decay_is_coupled(kKind) && p.decays) g = fma(p.decay, weight, g);
        if constexpr (kKind == Kind::kSgd) {
            weight = fma(p.minus_lr, g, weight);
        } else if constexpr (kKind == Kind::kMomentum || kKind == Kind::kNesterov || kKind == Kind::kLars) {
            if constexpr (kKind == Kind::kLars) g = hn::Mul(g, p.trust);
            const FloatVec v = fma(p.momentum, load(slot0 + i, lanes), g);
            store(v, slot0 + i, lanes);
            weight = fma(p.minus_lr, kKind == Kind::kNesterov ? fma(p.momentum, v, g) : v, weight);
        } else if constexpr (kKind == Kind::kAdagrad) {
            const FloatVec s = fma(g, g, load(slot0 + i, lanes));
            store(s, slot0 + i, lanes);
            weight = fma(p.minus_lr, hn::Div(g, p.root(s)), weight);
        } else if constexpr (kKind == Kind::kRmsprop || kKind == Kind::kRmspropMomentum) {
            const FloatVec s = p.mean_square(load(slot0 + i, lanes), g);
            store(s, slot0 + i, lanes);
            const FloatVec step = hn::Div(g, p.root(s));
            if constexpr (kKind == Kind::kRmspropMomentum) {
                const FloatVec v = fma(p.momentum, load(slot1 + i, lanes), hn::Mul(p.lr, step));
                store(v, slot1 + i, lanes);
                weight = hn::Sub(weight, v);
            } else {
                weight = fma(p.minus_lr, step, weight);
            }
        } else {
            if constexpr (kKind == Kind::kAdamW) weight = hn::Mul(weight, p.decay_factor);
            const FloatVec m = fma(p.beta1, load(slot0 + i, lanes), hn::Mul(p.rest1, g));
            const FloatVec v = p.mean_square(load(slot1 + i, lanes), g);
            store(m, slot0 + i, lanes);
            store(v, slot1 + i, lanes);
            FloatVec step = p.adam_direction(m, v);
            if constexpr (kKind == Kind::kLamb) {
                if (p.decays) step = fma(p.decay, weight, step);
                store(step, direction + i, lanes);
            } else {
                weight = fma(p.minus_lr, step, weight);
            }
        }
        if constexpr (kKind != Kind::kLamb) store(weight, w + i, lanes);
    });
}

void update(const UpdateParams& p, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
            float* direction) {
    switch (p.kind) {
        case OptimizerKind::kSgd:
            return update_as<OptimizerKind::kSgd>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kMomentum:
            return update_as<OptimizerKind::kMomentum>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kNesterov:
            return update_as<OptimizerKind::kNesterov>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kAdam:
            return update_as<OptimizerKind::kAdam>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kAdamW:
            return update_as<OptimizerKind::kAdamW>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kAdagrad:
            return update_as<OptimizerKind::kAdagrad>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kRmsprop:
            return update_as<OptimizerKind::kRmsprop>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kRmspropMomentum:
            return update_as<OptimizerKind::kRmspropMomentum>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kLars:
            return update_as<OptimizerKind::kLars>(p, n, gradient, w, slot0, slot1, direction);
        case OptimizerKind::kLamb:
            return update_as<OptimizerKind::kLamb>(p, n, gradient, w, slot0, slot1, direction);
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
