#include "optim/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

struct OptimizerRow {
    const char* name;
    OptimizerKind kind;
    bool decoupled_decay;
    std::array<const char*, 2> slots;  // null: no such slot
};

constexpr std::array<OptimizerRow, 5> kOptimizers{{
    {"sgd", OptimizerKind::kSgd, false, {nullptr, nullptr}},
    {"momentum", OptimizerKind::kMomentum, false, {"momentum", nullptr}},
    {"nesterov", OptimizerKind::kNesterov, false, {"momentum", nullptr}},
    {"adam", OptimizerKind::kAdam, false, {"m", "v"}},
    {"adamw", OptimizerKind::kAdamW, true, {"m", "v"}},
}};

const OptimizerRow& row_of(OptimizerKind kind) {
    return *std::find_if(kOptimizers.begin(), kOptimizers.end(),
                         [&](const OptimizerRow& row) { return row.kind == kind; });
}

OptimizerKind kind_of(const std::string& name) {
    for (const OptimizerRow& row : kOptimizers) {
        if (name == row.name) return row.kind;
    }
    std::string known;
    for (const OptimizerRow& row : kOptimizers) known += (known.empty() ? "" : ", ") + std::string(row.name);
    fail(ErrorKind::kUsage, "optimizer.name: \"{}\" is not one of {}", name, known);
}

/// Elements of the largest tensor that the norm must put into the file's order; 0 without one, or without a norm.
int64_t turned_elements(const OptimizerSpec& spec, std::span<const UpdateTensor> tensors) {
    int64_t most = 0;
    if (!spec.report_norm && spec.clip_norm <= 0) return most;
    for (const UpdateTensor& tensor : tensors) {
        if (!tensor.file_columns.empty()) most = std::max(most, tensor.count);
    }
    return most;
}

/// 1 - beta^u in fp64, rounded once: Adam's bias correction.
float bias_correction(double beta, int64_t update) {
    return static_cast<float>(1.0 - power_int_fixed(beta, static_cast<unsigned long long>(update)));
}

/// What an update's parameters share over all tensors, but for what depends on the gradient.
UpdateParams step_params(const OptimizerSpec& spec, OptimizerKind kind, int64_t update, float lr) {
    UpdateParams params;
    params.kind = kind;
    params.lr = lr;
    params.momentum = static_cast<float>(spec.momentum);
    params.beta1 = static_cast<float>(spec.beta1);
    params.beta2 = static_cast<float>(spec.beta2);
    params.one_minus_beta1 = static_cast<float>(1.0 - spec.beta1);
    params.one_minus_beta2 = static_cast<float>(1.0 - spec.beta2);
    params.correction1 = bias_correction(spec.beta1, update);
    params.correction2 = bias_correction(spec.beta2, update);
    params.epsilon = static_cast<float>(spec.epsilon);
    return params;
}

}  // namespace

Update::Update(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, int64_t flat_elements, Backend& backend)
    : spec_(spec),
      kind_(kind_of(spec.name)),
      tensors_(std::move(tensors)),
      flat_elements_(flat_elements),
      backend_(backend),
      file_order_count_(turned_elements(spec_, tensors_)) {
    if (spec_.decay != "all" && spec_.decay != "weights") {
        fail(ErrorKind::kUsage, "optimizer.decay: \"{}\" is not one of all, weights", spec_.decay);
    }
    const auto bytes = static_cast<std::size_t>(flat_elements_) * sizeof(float);
    for (std::size_t s = 0; s < 2; ++s) {
        if (row_of(kind_).slots[s] != nullptr) state_[s] = backend_.allocate(bytes);
    }
    if (spec_.report_norm || spec_.clip_norm > 0) {
        for (const UpdateTensor& tensor : tensors_) {
            columns_.emplace_back();
            if (tensor.file_columns.empty()) continue;
            const std::size_t size = tensor.file_columns.size() * sizeof(int32_t);
            columns_.back() = backend_.allocate(size);
            backend_.upload(backend_.main(), tensor.file_columns.data(), columns_.back()->data(), size);
        }
        if (file_order_count_ > 0) {
            file_order_ = backend_.allocate(static_cast<std::size_t>(2 * file_order_count_) * sizeof(float));
        }
    }
}

UpdateBytes update_bytes(const OptimizerSpec& spec, std::span<const UpdateTensor> tensors, int64_t flat_elements) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    UpdateBytes bytes;
    for (const char* slot : row_of(kind_of(spec.name)).slots) {
        if (slot != nullptr) bytes.state += flat_elements * kFloat;
    }
    bytes.scratch = 2 * turned_elements(spec, tensors) * kFloat;
    return bytes;
}

UpdateResult Update::apply(const float* gradient, float loss_sum, int64_t b, int64_t u, float lr, double lr_double,
                           float* weights, float loss_scale) {
    const bool wants_norm = spec_.report_norm || spec_.clip_norm > 0;
    const float divisor = (spec_.average ? static_cast<float>(b) : 1.0F) * loss_scale;
    const double squares = wants_norm ? square_sum(gradient, weights, divisor) : std::nan("");
    UpdateResult result;
    // G is finite exactly where g = G / b is; gaps between tensors hold zeros. A finite sum of squares shows it without
    // a pass of its own.
    if (!std::isfinite(loss_sum) ||
        (!std::isfinite(squares) && !backend_.all_finite(backend_.main(), flat_elements_, gradient))) {
        result.finite = false;
        return result;
    }
    UpdateParams params = step_params(spec_, kind_, u, lr);
    params.divisor = divisor;
    if (wants_norm) {
        const auto norm = static_cast<float>(std::sqrt(squares));
        const auto limit = static_cast<float>(spec_.clip_norm);
        params.clip_active = spec_.clip_norm > 0 && norm > limit;
        if (params.clip_active) params.clip = limit / norm;
        result.grad_norm = norm;
    }
    const bool decoupled = row_of(kind_).decoupled_decay;
    for (const UpdateTensor& tensor : tensors_) {
        const double decay = decays(tensor) ? spec_.weight_decay : 0.0;
        params.l2 = decays(tensor) ? static_cast<float>(spec_.l2) : 0.0F;
        params.weight_decay = decoupled ? 0.0F : static_cast<float>(decay);
        params.decay_factor = decoupled ? static_cast<float>(1.0 - lr_double * decay) : 1.0F;
        const auto slot = [&](std::size_t s) { return state_[s] ? state_[s]->floats() + tensor.offset : nullptr; };
        backend_.update(backend_.main(), params, tensor.count, gradient + tensor.offset, weights + tensor.offset,
                        slot(0), slot(1));
    }
    return result;
}

std::vector<Update::Slot> Update::slots() {
    std::vector<Slot> slots;
    for (std::size_t s = 0; s < 2; ++s) {
        if (state_[s]) slots.push_back({row_of(kind_).slots[s], state_[s]->floats()});
    }
    return slots;
}

/// Of g, l2 included; tensors are added in model order.
double Update::square_sum(const float* gradient, const float* weights, float divisor) {
    double sum = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const UpdateTensor& tensor = tensors_[t];
        const float l2 = decays(tensor) ? static_cast<float>(spec_.l2) : 0.0F;
        const float* const g = gradient + tensor.offset;
        const float* const w = weights + tensor.offset;
        sum += tensor.file_columns.empty() ? backend_.square_sum(backend_.main(), tensor.count, g, w, divisor, l2)
                                           : file_order_square_sum(t, g, w, divisor, l2);
    }
    return sum;
}

/// The sum's blocks and chains are numbered by the file's elements, so a tensor with turned columns is put into that
/// order first.
double Update::file_order_square_sum(std::size_t t, const float* gradient, const float* weights, float divisor,
                                     float l2) {
    const UpdateTensor& tensor = tensors_[t];
    const auto width = static_cast<int>(tensor.file_columns.size());
    float* const turned_gradient = file_order_->floats();
    float* const turned_weights = turned_gradient + file_order_count_;
    const auto turn = [&](const float* from, float* to) {
        const auto* columns = reinterpret_cast<const int32_t*>(columns_[t]->data());
        backend_.gather_columns(backend_.main(), tensor.count / width, width, columns, from, to);
    };
    turn(gradient, turned_gradient);
    if (l2 != 0) turn(weights, turned_weights);
    return backend_.square_sum(backend_.main(), tensor.count, turned_gradient, turned_weights, divisor, l2);
}

}  // namespace lockstep
