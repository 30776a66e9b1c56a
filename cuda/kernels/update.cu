#include "cuda/kernels/update.h"

#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

template <OptimizerKind kKind>
constexpr bool kHasSlot0 = kKind != OptimizerKind::kSgd;
template <OptimizerKind kKind>
constexpr bool kHasSlot1 = kKind == OptimizerKind::kAdam || kKind == OptimizerKind::kAdamW;

/// One element. Every product that is fused with a sum says so; division and root are IEEE's.
template <OptimizerKind kKind>
__device__ inline void update_element(const UpdateParams& p, float g, float& w, float& slot0, float& slot1) {
    if (p.divisor != 1.0F) g = __fdiv_rn(g, p.divisor);
    if (p.l2 != 0.0F) g = __fmaf_rn(p.l2, w, g);
    if (p.clip_active) g = g * p.clip;
    if (kKind != OptimizerKind::kAdamW && p.weight_decay != 0.0F) g = __fmaf_rn(p.weight_decay, w, g);
    if constexpr (kKind == OptimizerKind::kSgd) {
        w = __fmaf_rn(-p.lr, g, w);
    } else if constexpr (kKind == OptimizerKind::kMomentum) {
        slot0 = __fmaf_rn(p.momentum, slot0, g);
        w = __fmaf_rn(-p.lr, slot0, w);
    } else if constexpr (kKind == OptimizerKind::kNesterov) {
        slot0 = __fmaf_rn(p.momentum, slot0, g);
        w = __fmaf_rn(-p.lr, __fmaf_rn(p.momentum, slot0, g), w);
    } else {
        if constexpr (kKind == OptimizerKind::kAdamW) w = w * p.decay_factor;
        slot0 = __fmaf_rn(p.beta1, slot0, p.one_minus_beta1 * g);
        slot1 = __fmaf_rn(p.beta2, slot1, p.one_minus_beta2 * (g * g));
        const float scale = __fsqrt_rn(__fdiv_rn(slot1, p.correction2)) + p.epsilon;
        w = __fmaf_rn(-p.lr, __fdiv_rn(__fdiv_rn(slot0, p.correction1), scale), w);
    }
}

template <OptimizerKind kKind, int kWidth>
__global__ void k_update(UpdateParams p, int64_t n, const float* __restrict__ gradient, float* __restrict__ weights,
                         float* __restrict__ slots0, float* __restrict__ slots1) {
    for_each_pack<kWidth>(n, [&](auto width, int64_t i) {
        constexpr int count = decltype(width)::value;
        const Pack<count> g = load<count>(gradient + i);
        Pack<count> w = load<count>(weights + i), slot0{}, slot1{};
        if constexpr (kHasSlot0<kKind>) slot0 = load<count>(slots0 + i);
        if constexpr (kHasSlot1<kKind>) slot1 = load<count>(slots1 + i);
        for (int k = 0; k < count; ++k) update_element<kKind>(p, g.v[k], w.v[k], slot0.v[k], slot1.v[k]);
        store<count>(weights + i, w);
        if constexpr (kHasSlot0<kKind>) store<count>(slots0 + i, slot0);
        if constexpr (kHasSlot1<kKind>) store<count>(slots1 + i, slot1);
    });
}

template <OptimizerKind kKind>
void launch_kind(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                 cudaStream_t stream) {
    const int64_t n0 = kHasSlot0<kKind> ? n : 0, n1 = kHasSlot1<kKind> ? n : 0;
    const bool four = all_aligned(gradient, w, n0 > 0 ? slot0 : nullptr, n1 > 0 ? slot1 : nullptr);
    launch(four ? k_update<kKind, 4> : k_update<kKind, 1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream,
           params, n, in(gradient, n), inout(w, n), inout(slot0, n0), inout(slot1, n1));
}

}  // namespace

void launch_update(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
                   cudaStream_t stream) {
    if (n == 0) return;
    switch (params.kind) {
        case OptimizerKind::kSgd:
            return launch_kind<OptimizerKind::kSgd>(params, n, gradient, w, slot0, slot1, stream);
        case OptimizerKind::kMomentum:
            return launch_kind<OptimizerKind::kMomentum>(params, n, gradient, w, slot0, slot1, stream);
        case OptimizerKind::kNesterov:
            return launch_kind<OptimizerKind::kNesterov>(params, n, gradient, w, slot0, slot1, stream);
        case OptimizerKind::kAdam:
            return launch_kind<OptimizerKind::kAdam>(params, n, gradient, w, slot0, slot1, stream);
        case OptimizerKind::kAdamW:
            return launch_kind<OptimizerKind::kAdamW>(params, n, gradient, w, slot0, slot1, stream);
    }
}

}  // namespace lockstep
