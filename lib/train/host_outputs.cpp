#include "train/host_outputs.hpp"

#include <cstddef>

namespace lockstep {

HostOutputs::HostOutputs(Backend& backend, const Network& network)
    : backend_(backend),
      loss_(network.loss()),
      outputs_(network.outputs()),
      device_losses_(backend),
      device_probabilities_(backend),
      loss_view_(backend),
      value_view_(backend),
      probability_view_(backend) {}

const float* HostOutputs::losses(int rows, const float* outputs, const int32_t* labels) {
    const auto count = static_cast<std::size_t>(rows);
    auto* const on_device = device_losses_.at_least<float>(count);
    run_loss(backend_, backend_.main(), loss_.plain(), rows, outputs_, outputs, labels, on_device, nullptr);
    return loss_view_.read(on_device, count);
}

const float* HostOutputs::values(int rows, const float* outputs) {
    return value_view_.read(outputs, static_cast<std::size_t>(rows) * static_cast<std::size_t>(outputs_));
}

const float* HostOutputs::probabilities(int rows, const float* outputs) {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(outputs_);
    auto* const on_device = device_probabilities_.at_least<float>(count);
    if (loss_.kind == LossKind::kSoftmax) {
        backend_.softmax(backend_.main(), rows, outputs_, outputs, on_device);
        return probability_view_.read(on_device, count);
    }
    backend_.sigmoid(backend_.main(), rows, outputs, on_device);
    const float* const p = probability_view_.read(on_device, count);
    pairs_.resize(2 * count);
    for (std::size_t r = 0; r < count; ++r) {
        pairs_[2 * r] = 1.0F - p[r];
        pairs_[2 * r + 1] = p[r];
    }
    return pairs_.data();
}

int classes_ahead(const LossSpec& loss, int classes, const float* values, const float* probabilities, int32_t label) {
    const float* const ranked = loss.kind == LossKind::kSigmoid ? probabilities : values;
    const float own = ranked[label];
    int ahead = 0;
    for (int c = 0; c < classes; ++c) {
        const bool behind = ranked[c] < own || (ranked[c] == own && c > label);
        ahead += c != label && !behind;
    }
    return ahead;
}

}  // namespace lockstep
