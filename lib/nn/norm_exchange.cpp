#include "nn/norm_exchange.hpp"

#include <algorithm>
#include <chrono>

#include "comm/gather_parts.hpp"

namespace lockstep {
namespace {

constexpr auto kFloat = sizeof(float);

/// As large as asked for at most so far.
void at_least(std::unique_ptr<Buffer>& buffer, int64_t floats, bool host, Backend& backend) {
    const std::size_t bytes = static_cast<std::size_t>(std::max<int64_t>(1, floats)) * kFloat;
    if (buffer && buffer->bytes() >= bytes) return;
    buffer.reset();
    buffer = host ? backend.allocate_host(bytes) : backend.allocate(bytes);
}

}  // namespace

NormExchange::NormExchange(const std::vector<LayerSpec>& layers, Backend& backend, Communicator* comm)
    : layers_(layers), backend_(backend), comm_(comm), offsets_(layers.size(), 0) {
    const auto border = static_cast<int64_t>(backend.alignment() / kFloat);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].kind != LayerKind::kBatchNorm) continue;
        norms_.push_back(i);
        offsets_[i] = elements_;
        const int64_t length = (2 * int64_t{channels(i)} + border - 1) / border * border;
        elements_ += length;
        if (layers[i].is_border()) widest_border_ = std::max(widest_border_, length);
    }
    if (!has_borders()) return;
    at_least(totals_, elements_, false, backend_);
    at_least(statistics_, elements_, false, backend_);
}

void NormExchange::begin(const NormProgram& program, bool alone) {
    program_ = &program;
    alone_ = alone || comm_ == nullptr || comm_->size() == 1;
    at_least(moments_, program.leaves * elements_, false, backend_);
    at_least(nodes_, program.nodes * elements_, false, backend_);
    if (has_borders()) at_least(sums_, program.leaves * widest_border_, false, backend_);
    if (!alone_ && !backend_.host_sees_device()) at_least(host_nodes_, program.nodes * elements_, true, backend_);
}

void NormExchange::meet_forward(std::size_t layer) {
    const int64_t count = 2 * int64_t{channels(layer)};
    const auto merge = [&](const NodeMerge& nodes, const float* left, const float* right, float* into) {
        merge_layer(layer, nodes, left, right, into);
    };
    total(moments_->floats() + offsets_[layer], elements_, count, merge);
    copy(count, nodes_->floats(), totals_->floats() + offsets_[layer]);
    backend_.batch_statistics(backend_.main(), samples() * shape_positions(layer), channels(layer),
                              layers_[layer].norm.epsilon, nodes_->floats(), statistics(layer));
}

void NormExchange::meet_backward(std::size_t layer) {
    const int64_t count = 2 * int64_t{channels(layer)};
    const auto add = [&](const NodeMerge&, const float* left, const float* right, float* into) {
        backend_.add(backend_.main(), count, left, right, into);
    };
    total(sums_->floats(), widest_border_, count, add);
}

void NormExchange::update_running(float* weights) {
    const auto local = [&](std::size_t layer) { return !layers_[layer].is_border(); };
    if (std::any_of(norms_.begin(), norms_.end(), local)) {
        const auto merge = [&](const NodeMerge& nodes, const float* left, const float* right, float* into) {
            for (const std::size_t layer : norms_) {
                if (!local(layer)) continue;
                const int64_t at = offsets_[layer];
                merge_layer(layer, nodes, left + at, right + at, into + at);
            }
        };
        total(moments_->floats(), elements_, elements_, merge);
    }
    for (const std::size_t layer : norms_) {
        const LayerSpec& spec = layers_[layer];
        const float* const moments = (local(layer) ? nodes_ : totals_)->floats() + offsets_[layer];
        backend_.update_running(backend_.main(), samples() * shape_positions(layer), channels(layer),
                                spec.norm.momentum, spec.norm.one_minus_momentum, spec.norm.unbiased, moments,
                                weights + spec.running);
    }
}

int64_t NormExchange::bytes(const NormProgram& program) const {
    const int64_t borders = has_borders() ? program.leaves * widest_border_ + 2 * elements_ : 0;
    return ((program.leaves + program.nodes) * elements_ + borders) * static_cast<int64_t>(kFloat);
}

int64_t NormExchange::floats_sent(const NormProgram& program, int rank) const {
    int64_t each_node = 0;
    bool all_borders = true;
    for (const std::size_t layer : norms_) {
        if (layers_[layer].is_border()) each_node += 2 * 2 * int64_t{channels(layer)};  // forward, backward
        all_borders = all_borders && layers_[layer].is_border();
    }
    if (!all_borders) each_node += elements_;
    return each_node * parts_sent(program.nodes_of_rank, rank);
}

int64_t NormExchange::shape_positions(std::size_t layer) const {
    return int64_t{layers_[layer].in.height} * layers_[layer].in.width;
}

void NormExchange::merge_layer(std::size_t layer, const NodeMerge& nodes, const float* left, const float* right,
                               float* into) {
    const int64_t positions = shape_positions(layer);
    backend_.merge_moments(backend_.main(), channels(layer), nodes.into_samples * positions,
                           nodes.from_samples * positions, left, right, into);
}

void NormExchange::total(float* values, int64_t stride, int64_t count, Merge merge) {
    for (const NodeMerge& step : program_->local) {
        float* const into = values + step.into * stride;
        merge(step, into, values + step.from * stride, into);
    }
    float* const nodes = nodes_->floats();
    for (std::size_t i = 0; i < program_->roots.size(); ++i) {
        copy(count, values + program_->roots[i] * stride,
             nodes + (program_->first_node + static_cast<int64_t>(i)) * count);
    }
    if (!alone_) gather(count);
    for (const NodeMerge& step : program_->joins) {
        float* const into = nodes + step.into * count;
        merge(step, into, nodes + step.from * count, into);
    }
}

/// The nodes of all ranks, by way of the host where it does not see the device's memory.
void NormExchange::gather(int64_t count) {
    comm_->still_working();
    counts_.clear();
    for (const int64_t nodes : program_->nodes_of_rank) counts_.push_back(nodes * count);
    const auto all = static_cast<std::size_t>(program_->nodes * count);
    if (backend_.host_sees_device()) {
        backend_.wait(backend_.main());
        return exchange({nodes_->floats(), all});
    }
    const int64_t first = program_->first_node * count;
    const auto own = static_cast<std::size_t>(counts_[static_cast<std::size_t>(comm_->rank())]);
    backend_.wait(backend_.main());  // the upload before may still read it
    backend_.download(backend_.main(), nodes_->floats() + first, host_nodes_->floats() + first, own * kFloat);
    backend_.wait(backend_.main());
    exchange({host_nodes_->floats(), all});
    backend_.upload(backend_.main(), host_nodes_->floats(), nodes_->floats(), all * kFloat);
}

/// The first rank at a border waits here for the last one, whose own work the time is.
void NormExchange::exchange(std::span<float> nodes) {
    const auto start = std::chrono::steady_clock::now();
    gather_parts(*comm_, counts_, nodes);
    seconds_waiting_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void NormExchange::copy(int64_t count, const float* from, float* to) {
    const RowPart whole{static_cast<int>(count), 0};
    backend_.copy_part(backend_.main(), 1, static_cast<int>(count), from, whole, to, whole);
}

}  // namespace lockstep
