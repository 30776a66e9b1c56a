#include "nn/loss.hpp"

#include "core/error.hpp"

namespace lockstep {

LossSpec loss_spec(std::string_view name, double smoothing) {
    if (name == "softmax") return {LossKind::kSoftmax, static_cast<float>(smoothing)};
    if (name == "sigmoid") return {LossKind::kSigmoid, 0};
    if (name == "mse") return {LossKind::kSquared, 0};
    fail(ErrorKind::kUsage, "train.loss: \"{}\" is not one of softmax, sigmoid, mse", name);
}

void run_loss(Backend& backend, Stream& stream, const LossSpec& loss, int rows, int outputs, const float* values,
              const int32_t* labels, float* losses, float* doutputs) {
    switch (loss.kind) {
        case LossKind::kSoftmax:
            if (loss.smoothing != 0) {
                backend.smoothed_cross_entropy(stream, rows, outputs, loss.smoothing, values, labels, losses, doutputs);
            } else {
                backend.softmax_cross_entropy(stream, rows, outputs, values, labels, losses, doutputs);
            }
            return;
        case LossKind::kSigmoid:
            return backend.sigmoid_cross_entropy(stream, rows, values, labels, losses, doutputs);
        case LossKind::kSquared:  // the loader keeps targets, bit for bit, where labels lie
            return backend.squared_error(stream, rows, values, reinterpret_cast<const float*>(labels), losses,
                                         doutputs);
    }
}

}  // namespace lockstep
