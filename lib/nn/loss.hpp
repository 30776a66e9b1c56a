// What a network is trained to make small, from its outputs: one of three, chosen by the config and the data.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/backend.hpp"

namespace lockstep {

enum class LossKind {
    kSoftmax,  // cross entropy; an output for each class
    kSigmoid,  // cross entropy of two classes; one output, the logit of class 1
    kSquared,  // squared error of one number
};

struct LossSpec {
    LossKind kind = LossKind::kSoftmax;
    float smoothing = 0;  // kSoftmax: share of the target that is spread evenly over all classes

    /// The same without smoothing, which is a means of training: evaluation measures how the labels are met.
    LossSpec plain() const { return {kind, 0}; }
};

/// "softmax", "sigmoid" or "mse".
LossSpec loss_spec(std::string_view name, double smoothing);

/// Each row's loss, and d loss / d outputs where `doutputs` is not null. `labels`: classes, or the bits of the targets.
void run_loss(Backend& backend, Stream& stream, const LossSpec& loss, int rows, int outputs, const float* values,
              const int32_t* labels, float* losses, float* doutputs);

}  // namespace lockstep
