// The loss of a network in double, and without any order: what gradients must agree with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/reference_network.hpp"

namespace lockstep {

/// The sum of the samples' losses. Dropout and batch norm as in training.
double double_loss(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                   const std::vector<double>& weights);

}  // namespace lockstep
