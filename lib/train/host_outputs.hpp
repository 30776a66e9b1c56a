// A network's outputs brought to the host as what people ask for: losses, probabilities, predictions. The one place
// that evaluation and prediction learn from what a loss makes of outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "nn/network.hpp"
#include "train/device_input.hpp"
#include "train/host_view.hpp"

namespace lockstep {

class HostOutputs {
  public:
    HostOutputs(Backend& backend, const Network& network);

    // Of rows of outputs on the device; each valid until it is called again.

    /// The loss of each row, of smoothed labels without the smoothing.
    const float* losses(int rows, const float* outputs, const int32_t* labels);
    /// As they are: [rows][Network::outputs()].
    const float* values(int rows, const float* outputs);
    /// [rows][classes]. Of one logit z: 1 - p and p = sigmoid(z).
    const float* probabilities(int rows, const float* outputs);

  private:
    Backend& backend_;
    LossSpec loss_;
    int outputs_;
    DeviceScratch device_losses_, device_probabilities_;
    HostView loss_view_, value_view_, probability_view_;
    std::vector<float> pairs_;
};

/// Classes that come before the label when these are sorted by outputs, ties by class number; a NaN comes before
/// everything. `values` and `probabilities`: of this row.
int classes_ahead(const LossSpec& loss, int classes, const float* values, const float* probabilities, int32_t label);

}  // namespace lockstep
