#include "nn/network.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "nn/network_state.hpp"
#include "nn/step_run.hpp"

namespace lockstep {

Network::Network(const ModelSpec& spec, Backend& backend, int64_t most_rows, StepGraphs* graphs, Communicator* comm)
    : Network(build_model(spec), backend, most_rows, graphs, comm) {}
Network::Network(Model model, Backend& backend, int64_t most_rows, StepGraphs* graphs, Communicator* comm)
    : state_(std::make_unique<State>(std::move(model), backend, most_rows, graphs, comm)) {}
Network::~Network() = default;

const ParameterTable& Network::parameters() const {
    return state_->graph.model.parameters;
}
int Network::outputs() const {
    return state_->graph.outputs();
}
const LossSpec& Network::loss() const {
    return state_->graph.model.loss;
}
int Network::classes() const {
    switch (loss().kind) {
        case LossKind::kSoftmax:
            return outputs();
        case LossKind::kSigmoid:
            return 2;
        case LossKind::kSquared:
            break;
    }
    return 0;
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

bool Network::sums_surely_finite() const {
    return state_->sums_surely_finite;
}

void Network::train_step(const NetworkInput& input, int shards, ShardRange range, std::span<const int64_t> sizes,
                         const float* weights, std::span<float* const> partial, FunctionRef<void(int64_t first)> ready,
                         FunctionRef<void()> pass_done) {
    State& state = *state_;
    state.sums_surely_finite = state.worth_looking_at_factors(input.rows);
    if (input.rows == 0 && !state.norms.any()) return ready(0);  // a rank without samples: it has no partial sums
    const StepPattern& pattern = state.pattern_for(true, shards, range, sizes, input.alone);
    const PassProgram& program = pattern.program;
    if (state.norms.any()) state.norms.begin(pattern.norms, input.alone);
    const int rows = program.passes.empty() ? 0 : program.passes.back().first_row + program.passes.back().rows;
    if (rows != input.rows || static_cast<std::size_t>(program.roots) != partial.size()) {
        fail(ErrorKind::kRuntime,
             "training step: {} rows and {} partial sums were given, shards [{}, {}) have {} and {}", input.rows,
             partial.size(), range.begin, range.end, rows, program.roots);
    }
    if (program.passes.empty()) {
        state.take_part(ready);
        return ready(0);
    }
    state.check_passes(program);
    const auto none = [](int64_t) {};
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
        const bool last = p + 1 == program.passes.size();
        state.run_pass(pattern, p, input, weights, partial, last ? ready : FunctionRef<void(int64_t)>(none));
        if (!last) pass_done();
    }
}

void Network::update_running(float* weights) {
    if (state_->norms.any()) state_->norms.update_running(weights);
}

bool Network::has_batch_norm() const {
    return state_->norms.any();
}

bool Network::meets_in_step() const {
    return state_->norms.has_borders();
}

double Network::seconds_waiting() const {
    return state_->norms.seconds_waiting();
}

void Network::check_passes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    state_->check_passes(pass_program(shards, range, sizes, state_->most_rows));
}

const float* Network::logits(const float* pixels, int rows, const float* weights) {
    const int64_t size = rows;
    return logits(pixels, {&size, 1}, weights);
}

const float* Network::logits(const float* pixels, std::span<const int64_t> sizes, const float* weights) {
    State& state = *state_;
    const int shards = static_cast<int>(sizes.size());
    const StepPlan& plan = *state.pattern_for(false, shards, {0, shards}, sizes).plans.front();
    NetworkInput input;
    input.rows = plan.fold.rows;
    input.pixels = pixels;
    StepRun run(state.graph, plan, state.arena->data(), input, weights);
    run.forward(true);
    return run.logits();
}

int64_t Network::most_rows() const {
    return state_->most_rows;
}

int64_t Network::training_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    int64_t most = 0;
    for (const PassProgram::Pass& pass : pass_program(shards, range, sizes, state_->most_rows).passes) {
        most = std::max(most, plan_training(state_->graph, shards, pass.shards, sizes, state_->norms.elements()).bytes);
    }
    return most;
}

int64_t Network::pass_sum_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const {
    const PassProgram program = pass_program(shards, range, sizes, state_->most_rows);
    return (program.sums - program.roots) * state_->sum_floats() * static_cast<int64_t>(sizeof(float));
}

int64_t Network::evaluation_bytes(std::span<const int64_t> sizes) const {
    return plan_evaluation(state_->graph, sizes).bytes;
}

namespace {

NormProgram norms_of_rank(int shards, int rank, int world, std::span<const int64_t> sizes) {
    std::vector<ShardRange> ranges;
    for (int r = 0; r < world; ++r) ranges.push_back(shards_of_rank(shards, r, world));
    return norm_program(shards, ranges, static_cast<std::size_t>(rank), sizes);
}

}  // namespace

int64_t Network::norm_bytes(int shards, int rank, int world, std::span<const int64_t> sizes) const {
    return state_->norms.any() ? state_->norms.bytes(norms_of_rank(shards, rank, world, sizes)) : 0;
}

int64_t Network::norm_floats_sent(int shards, int rank, int world, std::span<const int64_t> sizes) const {
    if (!state_->norms.any() || world == 1) return 0;
    return state_->norms.floats_sent(norms_of_rank(shards, rank, world, sizes), rank);
}

int64_t Network::arena_bytes() const {
    return state_->arena ? static_cast<int64_t>(state_->arena->bytes()) : 0;
}

}  // namespace lockstep
