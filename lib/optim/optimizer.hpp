// The optimizers by name: what each keeps beside the weights, and the numbers that an update of theirs works with. To
// add one: a row here, a kind in backend/update_params.hpp, its formula in the backends.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backend/update_params.hpp"

namespace lockstep {

struct OptimizerSpec {
    std::string name = "momentum";  // sgd | momentum | nesterov | adagrad | rmsprop | adam | adamw | lars | lamb
    double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, rho = 0.9, epsilon = 1e-8;
    double rmsprop_momentum = 0;
    bool epsilon_inside = false;  // adagrad, rmsprop
    double initial = 0;           // adagrad, rmsprop: of the sum or mean of squares
    double trust = 0.001;         // lars
    double weight_decay = 0, l2 = 0, clip_norm = 0;
    std::string decay = "all";  // all | weights
    bool average = true;        // reduce.op
    bool report_norm = false;   // log.grad_norm, or clipping
};

/// Throws kUsage for an unknown name.
OptimizerKind optimizer_kind(const OptimizerSpec& spec);

/// Names of its slots, for checkpoints; null beyond update_slots(kind).
std::array<const char*, 2> slot_names(OptimizerKind kind);

/// The value that its first slot starts at; all others start at 0.
float initial_slot_value(const OptimizerSpec& spec, OptimizerKind kind);

/// What update `u` (1-based) shares over all tensors, but for what depends on the gradient.
UpdateParams step_params(const OptimizerSpec& spec, OptimizerKind kind, int64_t u, float lr);

/// What lars multiplies the direction of a tensor by: trust * |w| / (|g| + weight_decay * |w| + epsilon), in fp64 and
/// rounded once; 1 where either norm is 0 (You, Gitman, Ginsburg 2017).
float lars_ratio(const OptimizerSpec& spec, double weight_norm, double gradient_norm);

/// The learning rate of a tensor under lamb: lr * |w| / |direction|, in fp64 and rounded once; lr where either is 0
/// (You et al. 2019).
float lamb_rate(double lr, double weight_norm, double direction_norm);

}  // namespace lockstep
