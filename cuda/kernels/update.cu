#include "cuda/kernels/update.h"

#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

template <OptimizerKind kKind>
constexpr bool kHasSlot0 = update_slots(kKind) > 0;
template <OptimizerKind kKind>
constexpr bool kHasSlot1 = update_slots(kKind) > 1;
template <OptimizerKind kKind>
constexpr bool kDecayIsCoupled = decay_is_coupled(kKind);  // a kernel cannot call the host's function
template <OptimizerKind kKind>
constexpr bool kLeavesDirection = kKind == OptimizerKind::kLamb;

/// The divisor of adagrad and rmsprop.
__device__ inline float root(const UpdateParams& p, float s) {
    return p.epsilon_inside ? __fsqrt_rn(s + p.epsilon) : __fsqrt_rn(s) + p.epsilon;
}

/// Adam's step for a learning rate of 1, without decay.
__device__ inline float adam_direction(const UpdateParams& p, float g, float& m, float& v) {
    m = __fmaf_rn(p.beta1, m, p.one_minus_beta1 * g);
    v = __fmaf_rn(p.beta2, v, p.one_minus_beta2 * (g * g));
    return __fdiv_rn(__fdiv_rn(m, p.correction1), __fsqrt_rn(__fdiv_rn(v, p.correction2)) + p.epsilon);
}

/// One element. Every product that is fused with a sum says so; division and root are IEEE's.
template <OptimizerKind kKind>
__device__ inline void update_element(const UpdateParams& p, float g, float& w, float& slot0, float& slot1,
                                      float& direction) {
    using Kind = OptimizerKind;
    if (p.divisor != 1.0F) g = __fdiv_rn(g, p.divisor);
    if (p.l2 != 0.0F) g = __fmaf_rn(p.l2, w, g);
    if (p.clip_active) g = g * p.clip;
    if (kDecayIsCoupled<kKind> && p.weight_decay != 0.0F) g = __fmaf_rn(p.weight_decay, w, g);
    if constexpr (kKind == Kind::kSgd) {
        w = __fmaf_rn(-p.lr, g, w);
    } else if constexpr (kKind == Kind::kMomentum || kKind == Kind::kLars) {
        if constexpr (kKind == Kind::kLars) g = g * p.trust;
        slot0 = __fmaf_rn(p.momentum, slot0, g);
        w = __fmaf_rn(-p.lr, slot0, w);
    } else if constexpr (kKind == Kind::kNesterov) {
        slot0 = __fmaf_rn(p.momentum, slot0, g);
        w = __fmaf_rn(-p.lr, __fmaf_rn(p.momentum, slot0, g), w);
    } else if constexpr (kKind == Kind::kAdagrad) {
        slot0 = __fmaf_rn(g, g, slot0);
        w = __fmaf_rn(-p.lr, __fdiv_rn(g, root(p, slot0)), w);
    } else if constexpr (kKind == Kind::kRmsprop || kKind == Kind::kRmspropMomentum) {
        slot0 = __fmaf_rn(p.beta2, slot0, p.one_minus_beta2 * (g * g));
        const float step = __fdiv_rn(g, root(p, slot0));
        if constexpr (kKind == Kind::kRmsprop) {
            w = __fmaf_rn(-p.lr, step, w);
        } else {
            slot1 = __fmaf_rn(p.momentum, slot1, p.lr * step);
            w = w - slot1;
        }
    } else if constexpr (kKind == Kind::kLamb) {
        direction = adam_direction(p, g, slot0, slot1);
        if (p.weight_decay != 0.0F) direction = __fmaf_rn(p.weight_decay, w, direction);
    } else {
        if constexpr (kKind == Kind::kAdamW) w = w * p.decay_factor;
        w = __fmaf_rn(-p.lr, adam_direction(p, g, slot0, slot1), w);
    }
}

template <OptimizerKind kKind, int kWidth>
__global__ void k_update(UpdateParams p, int64_t n, const float* __restrict__ gradient, float* __restrict__ weights,
                         float* __restrict__ slots0, float* __restrict__ slots1, float* __restrict__ directions) {
    for_each_pack<kWidth>(n, [&](auto width, int64_t i) {
        constexpr int count = decltype(width)::value;
        const Pack<count> g = load<count>(gradient + i);
        Pack<count> w = load<count>(weights + i), slot0{}, slot1{}, direction{};
        if constexpr (kHasSlot0<kKind>) slot0 = load<count>(slots0 + i);
        if constexpr (kHasSlot1<kKind>) slot1 = load<count>(slots1 + i);
        for (int k = 0; k < count; ++k)
            update_element<kKind>(p, g.v[k], w.v[k], slot0.v[k], slot1.v[k], direction.v[k]);
        if constexpr (kLeavesDirection<kKind>) {
            store<count>(directions + i, direction);
        } else {
            store<count>(weights + i, w);
        }
        if constexpr (kHasSlot0<kKind>) store<count>(slots0 + i, slot0);
        if constexpr (kHasSlot1<kKind>) store<count>(slots1 + i, slot1);
    });
}

template <OptimizerKind kKind>
void launch_kind(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                 float* direction, cudaStream_t stream) {
    const int64_t n0 = kHasSlot0<kKind> ? n : 0, n1 = kHasSlot1<kKind> ? n : 0, nd = kLeavesDirection<kKind> ? n : 0;
    const bool four =
        all_aligned(gradient, w, n0 > 0 ? slot0 : nullptr, n1 > 0 ? slot1 : nullptr, nd > 0 ? direction : nullptr);
    launch(four ? k_update<kKind, 4> : k_update<kKind, 1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream,
           params, n, in(gradient, n), inout(w, n), inout(slot0, n0), inout(slot1, n1), out(direction, nd));
}

}  // namespace

void launch_update(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                   float* direction, cudaStream_t stream) {
    if (n == 0) return;
    const auto launch_it = [&]<OptimizerKind kKind>() {
        launch_kind<kKind>(params, n, gradient, w, slot0, slot1, direction, stream);
    };
    switch (params.kind) {
        case OptimizerKind::kSgd:
            return launch_it.template operator()<OptimizerKind::kSgd>();
        case OptimizerKind::kMomentum:
            return launch_it.template operator()<OptimizerKind::kMomentum>();
        case OptimizerKind::kNesterov:
            return launch_it.template operator()<OptimizerKind::kNesterov>();
        case OptimizerKind::kAdam:
            return launch_it.template operator()<OptimizerKind::kAdam>();
        case OptimizerKind::kAdamW:
            return launch_it.template operator()<OptimizerKind::kAdamW>();
        case OptimizerKind::kAdagrad:
            return launch_it.template operator()<OptimizerKind::kAdagrad>();
        case OptimizerKind::kRmsprop:
            return launch_it.template operator()<OptimizerKind::kRmsprop>();
        case OptimizerKind::kRmspropMomentum:
            return launch_it.template operator()<OptimizerKind::kRmspropMomentum>();
        case OptimizerKind::kLars:
            return launch_it.template operator()<OptimizerKind::kLars>();
        case OptimizerKind::kLamb:
            return launch_it.template operator()<OptimizerKind::kLamb>();
    }
}

}  // namespace lockstep
