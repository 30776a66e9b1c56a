// What an optimizer's update of one tensor is told: its kind and numbers, decided once for all elements by lib/optim.
#pragma once

namespace lockstep {

enum class OptimizerKind {
    kSgd,
    kMomentum,
    kNesterov,
    kAdam,
    kAdamW,
    kAdagrad,
    kRmsprop,
    kRmspropMomentum,  // with a second slot, its velocity
    kLars,
    kLamb,  // leaves its direction; its length decides the step, which an sgd update then takes
};

/// Arrays that an optimizer keeps beside the weights.
constexpr int update_slots(OptimizerKind kind) {
    switch (kind) {
        case OptimizerKind::kSgd:
            return 0;
        case OptimizerKind::kMomentum:
        case OptimizerKind::kNesterov:
        case OptimizerKind::kAdagrad:
        case OptimizerKind::kRmsprop:
        case OptimizerKind::kLars:
            return 1;
        case OptimizerKind::kAdam:
        case OptimizerKind::kAdamW:
        case OptimizerKind::kRmspropMomentum:
        case OptimizerKind::kLamb:
            return 2;
    }
    return 0;
}

/// Whether weight decay is added to the gradient: adamw shrinks the weights instead, lamb adds it to its direction.
constexpr bool decay_is_coupled(OptimizerKind kind) {
    return kind != OptimizerKind::kAdamW && kind != OptimizerKind::kLamb;
}

/// One fused update of a span of one tensor. In order: g = G / divisor (skipped where divisor is 1 and op is sum);
/// g = fma(l2, w, g) if l2 != 0; g = g * clip if clip_active; g = fma(weight_decay, w, g) if weight_decay != 0 (coupled
/// kinds); then the optimizer. The formulas, with their fmas, stand in backend/cpu/reference.hpp.
struct UpdateParams {
    OptimizerKind kind = OptimizerKind::kSgd;
    float divisor = 1;
    bool clip_active = false;
    float clip = 1;
    float l2 = 0;
    float weight_decay = 0;
    float lr = 0;
    float momentum = 0;
    float beta1 = 0, beta2 = 0;                      // beta2: rmsprop's rho, too
    float one_minus_beta1 = 0, one_minus_beta2 = 0;  // computed in fp64, rounded once
    float correction1 = 1, correction2 = 1;          // 1 - beta^u in fp64, rounded once
    float epsilon = 0;
    bool epsilon_inside = false;  // adagrad, rmsprop: under the root
    float decay_factor = 1;       // adamw: 1 - lr*wd in fp64, rounded once
    float trust = 1;              // lars: what the decayed gradient is multiplied by
};

}  // namespace lockstep
