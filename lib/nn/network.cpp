#include "nn/network.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "nn/layer.hpp"
#include "nn/memory_plan.hpp"
#include "nn/step_plan.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

struct Network::State {
    State(const ModelSpec& spec, Backend& device);

    StepPlan& plan_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes);
    StepPlan& adopt(StepPlan plan);

    Backend& backend;
    Model model;
    std::vector<std::unique_ptr<Layer>> layers;
    MemoryPlan training_memory, evaluation_memory;
    std::vector<int64_t> leaf_offsets;  // of each layer of the prefix: its part of a leaf
    int64_t leaf_elements = 0;
    std::vector<std::unique_ptr<StepPlan>> plans;
    std::unique_ptr<Buffer> arena;  // one for all plans: as large as the largest needs
};

namespace {

constexpr int64_t kLeafAlignment = 16;  // floats: each layer's part of a leaf starts on a 64-byte border

/// One pass over the network: a plan, the values of this step, and the arena they live in.
class Run {
  public:
    Run(Backend& backend, const Model& model, std::span<const std::unique_ptr<Layer>> layers, const MemoryPlan& memory,
        const StepPlan& plan, std::byte* arena, const NetworkInput& input, const float* weights)
        : backend_(backend),
          model_(model),
          layers_(layers),
          memory_(memory),
          plan_(plan),
          arena_(arena),
          input_(input),
          weights_(weights) {}

    /// The prefix block by block, each stream its range of blocks; then the suffix on all rows.
    void forward() {
        for (const auto& layer : layers_) layer->prepare(backend_.main(), weights_);
        if (!plan_.ranges.empty()) forward_prefix();
        for (std::size_t i = model_.prefix; i < layers_.size(); ++i) {
            layers_[i]->forward(pass(backend_.main(), all_rows()), values(i, all_rows(), 0));
        }
    }

    const float* logits() const { return address(memory_.outputs.back(), classes(), 0, 0); }

    /// The samples' losses, their sums to the roots, and d loss / d logits.
    void loss() {
        float* const losses = floats(plan_.losses);
        backend_.softmax_cross_entropy(backend_.main(), input_.rows, classes(), logits(), input_.labels, losses,
                                       suffix_gradient(0));
        backend_.fold_rows(backend_.main(), plan_.fold, 1, losses, plan_.loss_sums);
    }

    /// Last layer first. A layer's weight gradient follows its data gradient at once, so that its bucket leaves early.
    void backward_suffix(FunctionRef<void(int64_t)> ready) {
        const Pass all = pass(backend_.main(), all_rows());
        for (std::size_t i = layers_.size(); i-- > model_.prefix;) {
            const LayerSpec& spec = model_.layers[i];
            float* const dy = suffix_gradient(turn_);
            if (spec.in_place()) {
                layers_[i]->backward(all, values(i, all_rows(), 0), dy, dy);
            } else if (spec.data_gradient) {
                turn_ = 1 - turn_;
                layers_[i]->backward(all, values(i, all_rows(), 0), dy, suffix_gradient(turn_));
            }
            if (spec.has_weights()) {
                layers_[i]->backward_folded(all, values(i, all_rows(), 0), dy, plan_.gradients);
                ready(spec.weight);
            }
        }
    }

    /// Block by block, each stream its range; a shard's gradients are leaves, added as the leaf program says.
    void backward_prefix(std::span<const int64_t> leaf_offsets, int64_t leaf_elements) {
        backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
            const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
            for (int b = range.begin; b < range.end; ++b) {
                const LeafProgram::Leaf& leaf = plan_.leaves.leaves[static_cast<std::size_t>(b)];
                backward_block(stream, r, plan_.blocks[static_cast<std::size_t>(b)], slot(leaf.slot), leaf_offsets);
                for (int a = leaf.adds_begin; a < leaf.adds_end; ++a) {
                    add(stream, plan_.leaves.adds[static_cast<std::size_t>(a)], leaf_elements);
                }
            }
        });
        for (const SlotAdd& join : plan_.leaves.joins) add(backend_.main(), join, leaf_elements);
        for (std::size_t root = 0; root < plan_.leaves.roots.size(); ++root) {
            const float* const sum = slot(plan_.leaves.roots[root]);
            for (std::size_t i = 0; i < model_.prefix; ++i) {
                layers_[i]->store_leaf(backend_.main(), sum + leaf_offsets[i], plan_.gradients[root]);
            }
        }
    }

  private:
    void forward_prefix() {
        backend_.for_each_range(plan_.ranges, [&](Stream& stream, int r) {
            const ShardRange range = plan_.ranges[static_cast<std::size_t>(r)];
            for (int b = range.begin; b < range.end; ++b) {
                const Block block = plan_.blocks[static_cast<std::size_t>(b)];
                for (std::size_t i = 0; i < model_.prefix; ++i)
                    layers_[i]->forward(pass(stream, block), values(i, block, r));
            }
        });
    }

    void backward_block(Stream& stream, int r, Block block, float* leaf, std::span<const int64_t> leaf_offsets) {
        const Pass rows = pass(stream, block);
        const int64_t elements = model_.layers[model_.prefix - 1].out.elements();
        float* dy = suffix_gradient(turn_) + block.first * elements;
        int region = 0;
        for (std::size_t i = model_.prefix; i-- > 0;) {
            const LayerSpec& spec = model_.layers[i];
            const LayerValues at = values(i, block, r);
            if (spec.has_weights()) layers_[i]->backward_leaf(rows, at, dy, leaf + leaf_offsets[i]);
            if (!spec.data_gradient) return;  // no weights before it
            float* const dx = spec.in_place() ? dy : transient(r, region);
            if (!spec.in_place()) region = 1 - region;
            layers_[i]->backward(rows, at, dy, dx);
            dy = dx;
        }
    }

    void add(Stream& stream, SlotAdd operands, int64_t n) {
        backend_.add(stream, n, slot(operands.into), slot(operands.from), slot(operands.into));
    }

    Pass pass(Stream& stream, Block block) const {
        return {.stream = stream,
                .plan = plan_.number,
                .rows = block.rows,
                .training = plan_.training,
                .epoch = static_cast<uint32_t>(input_.epoch),
                .positions = plan_.training ? input_.positions + block.first : nullptr,
                .weights = weights_};
    }
    Block all_rows() const { return {0, input_.rows}; }
    int classes() const { return model_.layers.back().out.channels; }

    LayerValues values(std::size_t i, Block block, int r) const {
        const LayerSpec& spec = model_.layers[i];
        LayerValues at;
        const Place in = memory_.input_of(i);
        at.x = in.kind == Place::Kind::kInput ? input_.pixels + block.first * spec.in.elements()
                                              : address(in, spec.in.elements(), block.first, r);
        at.y = address(memory_.outputs[i], spec.out.elements(), block.first, r);
        if (spec.tap_bytes() > 0)
            at.taps = reinterpret_cast<uint8_t*>(arena_ + plan_.taps[i]) + block.first * spec.tap_bytes();
        return at;
    }
    float* address(Place place, int64_t elements, int first_row, int r) const {
        if (place.kind == Place::Kind::kTransient) return transient(r, place.number);
        return floats(plan_.kept[static_cast<std::size_t>(place.number)]) + first_row * elements;
    }
    float* floats(int64_t offset) const { return reinterpret_cast<float*>(arena_ + offset); }
    float* transient(int r, int region) const {
        return floats(plan_.transient + (int64_t{r} * 2 + region) * plan_.transient_bytes);
    }
    float* suffix_gradient(int turn) const {
        return floats(plan_.suffix_gradients + turn * plan_.suffix_gradient_bytes);
    }
    float* slot(int number) const { return floats(plan_.leaf_slots + number * plan_.leaf_bytes); }

    Backend& backend_;
    const Model& model_;
    std::span<const std::unique_ptr<Layer>> layers_;
    const MemoryPlan& memory_;
    const StepPlan& plan_;
    std::byte* arena_;
    const NetworkInput& input_;
    const float* weights_;
    int turn_ = 0;  // which of the two suffix gradients holds dy
};

}  // namespace

Network::State::State(const ModelSpec& spec, Backend& device) : backend(device), model(build_model(spec)) {
    for (const LayerSpec& layer : model.layers) layers.push_back(make_layer(layer, backend));
    training_memory = plan_memory(model.layers, model.prefix, true);
    evaluation_memory = plan_memory(model.layers, model.prefix, false);
    for (std::size_t i = 0; i < model.prefix; ++i) {
        leaf_offsets.push_back(leaf_elements);
        leaf_elements += (layers[i]->leaf_elements() + kLeafAlignment - 1) / kLeafAlignment * kLeafAlignment;
    }
}

StepPlan& Network::State::plan_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes) {
    for (const auto& plan : plans) {
        if (plan->is_for(training, shards, range, sizes)) return *plan;
    }
    return adopt(training ? plan_training(model, training_memory, backend, shards, range, sizes, leaf_elements)
                          : plan_evaluation(model, evaluation_memory, backend, static_cast<int>(sizes[0])));
}

StepPlan& Network::State::adopt(StepPlan plan) {
    plan.number = static_cast<int>(plans.size());
    std::vector<int> block_rows;
    for (const Block& block : plan.blocks) block_rows.push_back(block.rows);
    std::sort(block_rows.begin(), block_rows.end());
    block_rows.erase(std::unique(block_rows.begin(), block_rows.end()), block_rows.end());
    for (const auto& layer : layers) layer->plan(plan.number, plan.fold, block_rows);
    if (!arena || static_cast<int64_t>(arena->bytes()) < plan.bytes) {
        arena.reset();  // nothing in it outlives a step
        arena = backend.allocate(static_cast<std::size_t>(plan.bytes));
    }
    plans.push_back(std::make_unique<StepPlan>(std::move(plan)));
    return *plans.back();
}

Network::Network(const ModelSpec& spec, Backend& backend) : state_(std::make_unique<State>(spec, backend)) {}
Network::~Network() = default;

const ParameterTable& Network::parameters() const {
    return state_->model.parameters;
}
int Network::classes() const {
    return state_->model.layers.back().out.channels;
}

std::string Network::summary() const {
    std::string lines;
    for (const LayerSpec& layer : state_->model.layers) {
        const SampleShape out = layer.out;
        lines += fmt::format("{:<10} {:<12} {}\n", layer.name,
                             fmt::format("{}x{}x{}", out.height, out.width, out.channels), layer.parameters);
    }
    return lines;
}

void Network::train_step(const NetworkInput& input, int shards, ShardRange range, std::span<const int64_t> sizes,
                         const float* weights, std::span<float* const> partial,
                         FunctionRef<void(int64_t first)> ready) {
    if (input.rows == 0) {  // a rank without samples: it has no partial sums
        ready(0);
        return;
    }
    State& state = *state_;
    StepPlan& plan = state.plan_for(true, shards, range, sizes);
    if (plan.fold.rows != input.rows || plan.gradients.size() != partial.size()) {
        fail(ErrorKind::kRuntime,
             "training step: {} rows and {} partial sums were given, shards [{}, {}) have {} and {}", input.rows,
             partial.size(), range.begin, range.end, plan.fold.rows, plan.gradients.size());
    }
    for (std::size_t i = 0; i < partial.size(); ++i) {
        plan.loss_sums[i] = partial[i] + kLeadLoss;
        plan.gradients[i] = partial[i] + kLead;
    }
    Run run(state.backend, state.model, state.layers, state.training_memory, plan, state.arena->data(), input, weights);
    run.forward();
    run.loss();
    run.backward_suffix(ready);
    if (state.leaf_elements > 0) {
        run.backward_prefix(state.leaf_offsets, state.leaf_elements);
        ready(0);
    }
}

const float* Network::logits(const float* pixels, int rows, const float* weights) {
    State& state = *state_;
    const int64_t size = rows;
    StepPlan& plan = state.plan_for(false, 1, {0, 1}, {&size, 1});
    NetworkInput input;
    input.rows = rows;
    input.pixels = pixels;
    Run run(state.backend, state.model, state.layers, state.evaluation_memory, plan, state.arena->data(), input,
            weights);
    run.forward();
    return run.logits();
}

}  // namespace lockstep
