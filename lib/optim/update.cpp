#include "optim/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

/// Whether the norm of the whole gradient is needed.
bool wants_norm(const OptimizerSpec& spec) {
    return spec.report_norm || spec.clip_norm > 0;
}

/// Whether each tensor's own norms decide how far it goes.
bool adapts(OptimizerKind kind) {
    return kind == OptimizerKind::kLars || kind == OptimizerKind::kLamb;
}

/// Elements of the largest tensor that a norm must put into the file's order; 0 without one, or without a norm.
int64_t turned_elements(const OptimizerSpec& spec, OptimizerKind kind, std::span<const UpdateTensor> tensors) {
    int64_t most = 0;
    if (!wants_norm(spec) && !adapts(kind)) return most;
    for (const UpdateTensor& tensor : tensors) {
        if (!tensor.file_columns.empty()) most = std::max(most, tensor.count);
    }
    return most;
}

/// Elements of the largest tensor for which lamb leaves a direction.
int64_t direction_elements(OptimizerKind kind, std::span<const UpdateTensor> tensors) {
    int64_t most = 0;
    if (kind != OptimizerKind::kLamb) return most;
    for (const UpdateTensor& tensor : tensors) most = std::max(most, tensor.count);
    return most;
}

}  // namespace

Update::Update(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, int64_t flat_elements, Backend& backend)
    : spec_(spec),
      kind_(optimizer_kind(spec)),
      tensors_(std::move(tensors)),
      flat_elements_(flat_elements),
      backend_(backend),
      squares_(tensors_.size()),
      file_order_count_(turned_elements(spec_, kind_, tensors_)) {
    if (spec_.decay != "all" && spec_.decay != "weights") {
        fail(ErrorKind::kUsage, "optimizer.decay: \"{}\" is not one of all, weights", spec_.decay);
    }
    for (int s = 0; s < update_slots(kind_); ++s) {
        state_[s] = backend_.allocate(static_cast<std::size_t>(flat_elements_ * kFloat));
    }
    if (const float initial = initial_slot_value(spec_, kind_); initial != 0) fill(state_[0]->floats(), initial);
    if (const int64_t most = direction_elements(kind_, tensors_); most > 0) {
        direction_ = backend_.allocate(static_cast<std::size_t>(most * kFloat));
    }
    columns_.resize(tensors_.size());
    if (file_order_count_ == 0) return;
    file_order_ = backend_.allocate(static_cast<std::size_t>(2 * file_order_count_ * kFloat));
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const std::vector<int32_t>& columns = tensors_[t].file_columns;
        if (columns.empty()) continue;
        const std::size_t size = columns.size() * sizeof(int32_t);
        columns_[t] = backend_.allocate(size);
        backend_.upload(backend_.main(), columns.data(), columns_[t]->data(), size);
    }
}

/// In pieces, so that no second copy of a large array lies on the host.
void Update::fill(float* values, float value) {
    const std::vector<float> piece(static_cast<std::size_t>(std::min<int64_t>(flat_elements_, 1 << 16)), value);
    const auto size = static_cast<int64_t>(piece.size());
    for (int64_t at = 0; at < flat_elements_; at += size) {
        const int64_t count = std::min(size, flat_elements_ - at);
        backend_.upload(backend_.main(), piece.data(), values + at, static_cast<std::size_t>(count * kFloat));
    }
}

UpdateBytes update_bytes(const OptimizerSpec& spec, std::span<const UpdateTensor> tensors, int64_t flat_elements) {
    const OptimizerKind kind = optimizer_kind(spec);
    UpdateBytes bytes;
    bytes.state = update_slots(kind) * flat_elements * kFloat;
    bytes.scratch = (2 * turned_elements(spec, kind, tensors) + direction_elements(kind, tensors)) * kFloat;
    return bytes;
}

UpdateResult Update::apply(const float* gradient, float loss_sum, int64_t b, int64_t u, float lr, double lr_double,
                           float* weights, float loss_scale, bool surely_finite) {
    const float divisor = (spec_.average ? static_cast<float>(b) : 1.0F) * loss_scale;
    const bool sums = wants_norm(spec_) || kind_ == OptimizerKind::kLars;
    const double squares = sums ? square_sums(gradient, weights, divisor) : std::nan("");
    UpdateResult result;
    // G is finite exactly where g = G / b is; gaps between tensors hold zeros. A finite sum of squares shows it without
    // a pass of its own.
    if (!std::isfinite(loss_sum) || (!surely_finite && !std::isfinite(squares) &&
                                     !backend_.all_finite(backend_.main(), flat_elements_, gradient))) {
        result.finite = false;
        return result;
    }
    UpdateParams params = step_params(spec_, kind_, u, lr);
    params.divisor = divisor;
    if (wants_norm(spec_)) {
        const auto norm = static_cast<float>(std::sqrt(squares));
        const auto limit = static_cast<float>(spec_.clip_norm);
        params.clip_active = spec_.clip_norm > 0 && norm > limit;
        if (params.clip_active) params.clip = limit / norm;
        result.grad_norm = norm;
    }
    for (std::size_t t = 0; t < tensors_.size(); ++t) update_tensor(t, params, lr_double, gradient, weights);
    return result;
}

void Update::update_tensor(std::size_t t, UpdateParams params, double lr, const float* gradient, float* weights) {
    const UpdateTensor& tensor = tensors_[t];
    const double decay = decay_of(tensor);
    float* const w = weights + tensor.offset;
    params.l2 = l2_of(tensor);
    params.weight_decay = static_cast<float>(decay);
    if (kind_ == OptimizerKind::kAdamW) params.decay_factor = static_cast<float>(1.0 - lr * decay);
    // What does not decay (biases, by optimizer.decay) does not adapt either.
    const bool adapting = adapts(kind_) && decays(tensor);
    if (kind_ == OptimizerKind::kLars && adapting) {
        const double clip = params.clip_active ? params.clip : 1.0;
        params.trust = lars_ratio(spec_, norm_of(t, w), std::sqrt(squares_[t]) * clip);
    }
    if (kind_ == OptimizerKind::kLamb && !adapting) params.kind = OptimizerKind::kAdam;
    const auto slot = [&](int s) { return state_[s] ? state_[s]->floats() + tensor.offset : nullptr; };
    float* const direction = direction_ ? direction_->floats() : nullptr;
    backend_.update(backend_.main(), params, tensor.count, gradient + tensor.offset, w, slot(0), slot(1), direction);
    if (params.kind != OptimizerKind::kLamb) return;
    UpdateParams step;
    step.lr = lamb_rate(lr, norm_of(t, w), norm_of(t, direction));
    backend_.update(backend_.main(), step, tensor.count, direction, w, nullptr, nullptr, nullptr);
}

std::vector<Update::Slot> Update::slots() {
    std::vector<Slot> slots;
    for (std::size_t s = 0; s < 2; ++s) {
        if (state_[s]) slots.push_back({slot_names(kind_)[s], state_[s]->floats()});
    }
    return slots;
}

/// Of g, l2 included, for each tensor; they are added in model order.
double Update::square_sums(const float* gradient, const float* weights, float divisor) {
    double sum = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const UpdateTensor& tensor = tensors_[t];
        squares_[t] = square_sum(t, gradient + tensor.offset, weights + tensor.offset, divisor, l2_of(tensor));
        sum += squares_[t];
    }
    return sum;
}

double Update::norm_of(std::size_t t, const float* values) {
    return std::sqrt(square_sum(t, values, values, 1, 0));
}

/// The sum's blocks and chains are numbered by the file's elements, so a tensor with turned columns is put into that
/// order first. `gradient` and `weights` are the tensor's own.
double Update::square_sum(std::size_t t, const float* gradient, const float* weights, float divisor, float l2) {
    const UpdateTensor& tensor = tensors_[t];
    if (tensor.file_columns.empty()) {
        return backend_.square_sum(backend_.main(), tensor.count, gradient, weights, divisor, l2);
    }
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
