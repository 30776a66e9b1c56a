#include "nn/network.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "nn/graph.hpp"
#include "nn/step_plan.hpp"
#include "nn/step_run.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

struct Network::State {
    State(const ModelSpec& spec, Backend& backend) : graph(build_model(spec), backend) {}

    StepPlan& plan_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes);
    StepPlan& adopt(StepPlan plan);
    int free_number();

    // With layout "epoch" the sizes of the shards go round: up to V patterns before the first one returns, each of
    // which has V entries. 64 of them are kept; with more, a step makes its plan anew, which costs little beside its
    // own work.
    static constexpr std::size_t kMostPlans = 64;

    Graph graph;
    std::vector<std::unique_ptr<StepPlan>> plans;  // by their numbers
    std::vector<int64_t> last_use;                 // of each
    int64_t uses = 0;
    std::unique_ptr<Buffer> arena;  // one for all plans: as large as the largest needs
};

StepPlan& Network::State::plan_for(bool training, int shards, ShardRange range, std::span<const int64_t> sizes) {
    for (const auto& plan : plans) {
        if (plan == nullptr || !plan->is_for(training, shards, range, sizes)) continue;
        last_use[static_cast<std::size_t>(plan->number)] = ++uses;
        return *plan;
    }
    return adopt(training ? plan_training(graph, shards, range, sizes)
                          : plan_evaluation(graph, static_cast<int>(sizes[0])));
}

StepPlan& Network::State::adopt(StepPlan plan) {
    plan.number = free_number();
    std::vector<int> block_rows;
    for (const Block& block : plan.blocks) {
        block_rows.push_back(block.rows);
        for (int i = 0; i < plan.pieces(block); ++i) block_rows.push_back(plan.piece(block, i).rows);
    }
    std::sort(block_rows.begin(), block_rows.end());
    block_rows.erase(std::unique(block_rows.begin(), block_rows.end()), block_rows.end());
    for (const auto& layer : graph.layers) layer->plan(plan.number, plan.fold, block_rows);
    if (!arena || static_cast<int64_t>(arena->bytes()) < plan.bytes) {
        arena.reset();  // nothing in it outlives a step
        arena = graph.backend.allocate(static_cast<std::size_t>(plan.bytes));
    }
    const auto number = static_cast<std::size_t>(plan.number);
    last_use[number] = ++uses;
    plans[number] = std::make_unique<StepPlan>(std::move(plan));
    return *plans[number];
}

/// A new one, or that of the plan that was not used for longest: the layers replace theirs, too.
int Network::State::free_number() {
    if (plans.size() < kMostPlans) {
        plans.emplace_back();
        last_use.push_back(0);
        return static_cast<int>(plans.size()) - 1;
    }
    const auto oldest = std::min_element(last_use.begin(), last_use.end()) - last_use.begin();
    plans[static_cast<std::size_t>(oldest)].reset();
    return static_cast<int>(oldest);
}

Network::Network(const ModelSpec& spec, Backend& backend) : state_(std::make_unique<State>(spec, backend)) {}
Network::~Network() = default;

const ParameterTable& Network::parameters() const {
    return state_->graph.model.parameters;
}
int Network::classes() const {
    return state_->graph.classes();
}

std::string Network::summary() const {
    std::string lines;
    for (const LayerSpec& layer : state_->graph.model.layers) {
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
    StepRun run(state.graph, plan, state.arena->data(), input, weights);
    run.forward();
    run.loss();
    ready(state.graph.model.parameters.flat_elements());
    run.backward_suffix(ready);
    if (state.graph.leaf_elements > 0) {
        run.backward_prefix();
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
    StepRun run(state.graph, plan, state.arena->data(), input, weights);
    run.forward();
    return run.logits();
}

int64_t Network::training_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    return plan_training(state_->graph, shards, range, sizes).bytes;
}

int64_t Network::evaluation_bytes(int rows) const {
    return plan_evaluation(state_->graph, rows).bytes;
}

int64_t Network::arena_bytes() const {
    return state_->arena ? static_cast<int64_t>(state_->arena->bytes()) : 0;
}

}  // namespace lockstep
