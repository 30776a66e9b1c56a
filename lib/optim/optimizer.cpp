#include "optim/optimizer.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

struct OptimizerRow {
    const char* name;
    OptimizerKind kind;
    std::array<const char*, 2> slots;
};

constexpr std::array<OptimizerRow, 10> kOptimizers{{
    {"sgd", OptimizerKind::kSgd, {nullptr, nullptr}},
    {"momentum", OptimizerKind::kMomentum, {"momentum", nullptr}},
    {"nesterov", OptimizerKind::kNesterov, {"momentum", nullptr}},
    {"adagrad", OptimizerKind::kAdagrad, {"square_sum", nullptr}},
    {"rmsprop", OptimizerKind::kRmsprop, {"mean_square", nullptr}},
    {"rmsprop", OptimizerKind::kRmspropMomentum, {"mean_square", "momentum"}},
    {"adam", OptimizerKind::kAdam, {"m", "v"}},
    {"adamw", OptimizerKind::kAdamW, {"m", "v"}},
    {"lars", OptimizerKind::kLars, {"momentum", nullptr}},
    {"lamb", OptimizerKind::kLamb, {"m", "v"}},
}};

/// 1 - beta^u in fp64, rounded once: Adam's bias correction.
float bias_correction(double beta, int64_t update) {
    return static_cast<float>(1.0 - power_int_fixed(beta, static_cast<unsigned long long>(update)));
}

bool is_rmsprop(OptimizerKind kind) {
    return kind == OptimizerKind::kRmsprop || kind == OptimizerKind::kRmspropMomentum;
}

}  // namespace

OptimizerKind optimizer_kind(const OptimizerSpec& spec) {
    if (spec.name == "rmsprop" && spec.rmsprop_momentum > 0) return OptimizerKind::kRmspropMomentum;
    std::string known;
    for (const OptimizerRow& row : kOptimizers) {
        if (spec.name == row.name) return row.kind;
        if (row.kind == OptimizerKind::kRmspropMomentum) continue;
        known.append(known.empty() ? "" : ", ").append(row.name);
    }
    fail(ErrorKind::kUsage, "optimizer.name: \"{}\" is not one of {}", spec.name, known);
}

std::array<const char*, 2> slot_names(OptimizerKind kind) {
    return std::find_if(kOptimizers.begin(), kOptimizers.end(),
                        [&](const OptimizerRow& row) { return row.kind == kind; })
        ->slots;
}

float initial_slot_value(const OptimizerSpec& spec, OptimizerKind kind) {
    return kind == OptimizerKind::kAdagrad || is_rmsprop(kind) ? static_cast<float>(spec.initial) : 0.0F;
}

UpdateParams step_params(const OptimizerSpec& spec, OptimizerKind kind, int64_t u, float lr) {
    UpdateParams params;
    params.kind = kind;
    params.lr = lr;
    params.momentum = static_cast<float>(is_rmsprop(kind) ? spec.rmsprop_momentum : spec.momentum);
    const double beta2 = is_rmsprop(kind) ? spec.rho : spec.beta2;
    params.beta1 = static_cast<float>(spec.beta1);
    params.beta2 = static_cast<float>(beta2);
    params.one_minus_beta1 = static_cast<float>(1.0 - spec.beta1);
    params.one_minus_beta2 = static_cast<float>(1.0 - beta2);
    params.correction1 = bias_correction(spec.beta1, u);
    params.correction2 = bias_correction(spec.beta2, u);
    params.epsilon = static_cast<float>(spec.epsilon);
    params.epsilon_inside = spec.epsilon_inside;
    return params;
}

float lars_ratio(const OptimizerSpec& spec, double weight_norm, double gradient_norm) {
    if (!(weight_norm > 0 && gradient_norm > 0)) return 1.0F;
    return static_cast<float>(spec.trust * weight_norm /
                              (gradient_norm + spec.weight_decay * weight_norm + spec.epsilon));
}

float lamb_rate(double lr, double weight_norm, double direction_norm) {
    if (!(weight_norm > 0 && direction_norm > 0)) return static_cast<float>(lr);
    return static_cast<float>(lr * (weight_norm / direction_norm));
}

}  // namespace lockstep
