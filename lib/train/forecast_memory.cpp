#include "train/forecast_memory.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "nn/pass_program.hpp"

namespace lockstep {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

int64_t rows_of(std::span<const int64_t> sizes, ShardRange local) {
    return std::accumulate(sizes.begin() + local.begin, sizes.begin() + local.end, int64_t{0});
}

}  // namespace

MemoryPlanner::MemoryPlanner(const Config& config, const DataFacts& facts, const RunPlan& plan, const Network& network)
    : config_(config), facts_(facts), plan_(plan), network_(network) {
    for (const int64_t step : telling_steps(config, plan)) {
        std::vector<int64_t> sizes = plan.shards.shard_sizes(step);
        if (std::find(sizes_.begin(), sizes_.end(), sizes) == sizes_.end()) sizes_.push_back(std::move(sizes));
    }
    const ParameterTable& parameters = network.parameters();
    update_ = update_bytes(optimizer_spec(config), update_tensors(parameters), parameters.flat_elements());
}

MemoryForecast MemoryPlanner::of_rank(int rank, int world) const {
    const ShardRange local = shards_of_rank(plan_.shards.shards(), rank, world);
    const int64_t elements = network_.parameters().flat_elements();
    MemoryForecast memory;
    memory.weights = network_.parameters().stored_elements() * kFloat;
    memory.gradients = gradient_sums(plan_, local) * (kLead + elements) * kFloat + pass_sums(local);
    memory.optimizer = update_.state + update_.scratch;
    memory.exchange = exchange(rank, world);
    memory.activations = activations(local) + moments(rank, world);
    memory.loader = loader(local);
    memory.data = facts_.memory_bytes;
    if (rank == 0) memory.saving = 2 * (memory.weights + update_.state);
    return memory;
}

int64_t MemoryPlanner::exchange(int rank, int world) const {
    if (config_.reduce.algorithm != "canonical") return 0;
    int64_t most = 0;
    for (const std::vector<int64_t>& sizes : sizes_) {
        const Traffic traffic = canonical_traffic(config_, network_.parameters().flat_elements(), rank, world, sizes);
        most = std::max(most, traffic.scratch_bytes);
    }
    return most;
}

int64_t MemoryPlanner::moments(int rank, int world) const {
    int64_t most = 0;
    for (const std::vector<int64_t>& sizes : sizes_) {
        most = std::max(most, network_.norm_bytes(plan_.shards.shards(), rank, world, sizes));
    }
    return most;
}

int64_t MemoryPlanner::pass_sums(ShardRange local) const {
    int64_t most = 0;
    for (const std::vector<int64_t>& sizes : sizes_) {
        most = std::max(most, network_.pass_sum_bytes(plan_.shards.shards(), local, sizes));
    }
    return most;
}

// One arena serves all passes: it is as large as the largest needs.
int64_t MemoryPlanner::activations(ShardRange local) const {
    int64_t most = 0;
    for (const std::vector<int64_t>& sizes : sizes_) {
        if (rows_of(sizes, local) == 0) continue;
        most = std::max(most, network_.training_bytes(plan_.shards.shards(), local, sizes));
    }
    if (evaluated_samples() == 0) return most;
    const ShardPlan evaluation = evaluation_plan(config_, evaluated_samples());
    for (const int64_t piece : {int64_t{0}, evaluation.steps_per_epoch() - 1}) {
        const std::vector<int64_t> sizes = evaluation.shard_sizes(piece);
        for (const PassProgram::Pass& pass :
             pass_program(evaluation.shards(), local, sizes, network_.most_rows()).passes) {
            most = std::max(
                most, network_.evaluation_bytes(std::span(sizes).subspan(
                          static_cast<std::size_t>(pass.shards.begin), static_cast<std::size_t>(pass.shards.size()))));
        }
    }
    return most;
}

// That of an evaluation exists beside the training's.
int64_t MemoryPlanner::loader(ShardRange local) const {
    LoaderOptions options = training_loader_options(config_, plan_, local, 1);
    const int64_t elements = facts_.shape.elements();
    int64_t bytes = loader_bytes(plan_.shards, options, elements);
    if (evaluated_samples() > 0)
        bytes += loader_bytes(evaluation_plan(config_, evaluated_samples()), options, elements);
    return bytes;
}

int64_t MemoryPlanner::evaluated_samples() const {
    return std::max(facts_.test_samples, facts_.validation_samples);
}

}  // namespace lockstep
