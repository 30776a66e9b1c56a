// One weight update, identically on all ranks, each part exactly once and in one order: check, divide, l2, norm, clip,
// coupled decay, optimizer. The fused elementwise formulas are the backend's (backend/update_params.hpp); what is
// decided once for all elements (norms, factors, whether to update at all) is decided here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "optim/optimizer.hpp"

namespace lockstep {

/// One trainable tensor in the flat arrays.
struct UpdateTensor {
    int64_t offset = 0;
    int64_t count = 0;
    bool is_weight = true;  // rank >= 2: what optimizer.decay = "weights" means
    /// Parameter::file_columns(): norms add squares in the file's order. Empty where memory has that order.
    std::vector<int32_t> file_columns = {};
};

struct UpdateResult {
    bool finite = true;              // false: nothing was changed
    std::optional<float> grad_norm;  // when clipping or asked for
};

/// Bytes on the device that an Update of such tensors holds: optimizer state, and scratch of norms and directions.
struct UpdateBytes {
    int64_t state = 0;
    int64_t scratch = 0;
};
UpdateBytes update_bytes(const OptimizerSpec& spec, std::span<const UpdateTensor> tensors, int64_t flat_elements);

class Update {
  public:
    /// Throws kUsage for an unknown optimizer or decay. The optimizer's state starts at 0, squares at
    /// optimizer.initial.
    Update(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, int64_t flat_elements, Backend& backend);

    /// `gradient`: flat total G (after the lead). `weights`: flat. b: samples behind it. u: 1-based number among the
    /// updates done. `loss_scale`: a power of two that G was multiplied by.
    /// Non-finite are an element of G or the loss, and nothing else: where finite elements have a norm beyond fp32, it
    /// counts as infinite and clips the gradient to 0.
    /// `surely_finite`: the caller knows that all of G is finite, and it is not read to find out.
    UpdateResult apply(const float* gradient, float loss_sum, int64_t b, int64_t u, float lr, double lr_double,
                       float* weights, float loss_scale = 1, bool surely_finite = false);

    /// Optimizer state, flat as the weights: names ("momentum"; "m", "v") and arrays; for checkpoints.
    struct Slot {
        std::string name;
        float* values;
    };
    std::vector<Slot> slots();

  private:
    void fill(float* values, float value);
    double square_sums(const float* gradient, const float* weights, float divisor);
    double square_sum(std::size_t t, const float* gradient, const float* weights, float divisor, float l2);
    double norm_of(std::size_t t, const float* values);
    double decay_of(const UpdateTensor& tensor) const { return decays(tensor) ? spec_.weight_decay : 0.0; }
    float l2_of(const UpdateTensor& tensor) const { return decays(tensor) ? static_cast<float>(spec_.l2) : 0.0F; }
    bool decays(const UpdateTensor& tensor) const { return tensor.is_weight || spec_.decay == "all"; }
    void update_tensor(std::size_t t, UpdateParams params, double lr, const float* gradient, float* weights);

    OptimizerSpec spec_;
    OptimizerKind kind_;
    std::vector<UpdateTensor> tensors_;
    int64_t flat_elements_;
    Backend& backend_;
    std::unique_ptr<Buffer> state_[2];
    std::vector<double> squares_;                   // of each tensor's gradient, where a norm is wanted
    std::unique_ptr<Buffer> direction_;             // lamb's, of one tensor
    std::unique_ptr<Buffer> file_order_;            // gradient and weights of one tensor in the file's order, for norms
    int64_t file_order_count_ = 0;                  // elements of each of the two
    std::vector<std::unique_ptr<Buffer>> columns_;  // of each tensor: its file_columns on the device, for that
};

}  // namespace lockstep
