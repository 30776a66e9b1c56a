// One weight update, identically on all ranks, each part exactly once and in DESIGN order: divide, check, l2, norm, clip,
// coupled decay, optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

struct OptimizerSpec {
    std::string name = "momentum";  // sgd | momentum | nesterov | adam | adamw
    double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0, l2 = 0, clip_norm = 0;
    std::string decay = "all";      // all | weights
    bool average = true;            // reduce.op
    bool report_norm = false;       // log.grad_norm, or clipping
};

/// One trainable tensor in the flat arrays.
struct UpdateTensor {
    int64_t offset;
    int64_t count;
    bool is_weight;  // rank >= 2: what optimizer.decay = "weights" means
};

struct UpdateResult {
    bool finite = true;               // false: nothing was changed
    std::optional<float> grad_norm;   // when clipping or asked for
};

class Update {
  public:
    Update(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, int64_t flat_elements, Backend& backend);

    /// `gradient`: flat total G (after the lead). `weights`: flat. b: samples behind it. u: 1-based update number.
    UpdateResult apply(const float* gradient, float loss_sum, int64_t b, int64_t u, float lr, double lr_double, float* weights);

    /// Optimizer state, flat as the weights: names ("momentum"; "m", "v") and arrays; for checkpoints.
    struct Slot {
        std::string name;
        float* values;
    };
    std::vector<Slot> slots();

  private:
    OptimizerSpec spec_;
    std::vector<UpdateTensor> tensors_;
    int64_t flat_elements_;
    Backend& backend_;
    std::unique_ptr<Buffer> state_[2];
};

}  // namespace lockstep
