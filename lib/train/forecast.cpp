#include "train/forecast.hpp"

#include <algorithm>
#include <bit>

#include "backend/cpu/cpu_backend.hpp"
#include "core/thread_pool.hpp"
#include "train/device.hpp"
#include "train/forecast_memory.hpp"
#include "train/history.hpp"

namespace lockstep {
namespace {

bool power_of_two(int n) {
    return std::has_single_bit(static_cast<unsigned>(n));
}

bool same_shards_empty(std::span<const int64_t> a, std::span<const int64_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](int64_t x, int64_t y) { return (x == 0) == (y == 0); });
}

/// In a few words, what the reducer does at this world size and why.
std::string note_on(const WorldForecast& world, ReduceMethod method, int shards) {
    if (world.idle > 0)
        return fmt::format("costs: V = {} shards, {} rank{} idle", shards, world.idle, world.idle == 1 ? "" : "s");
    switch (method) {
        case ReduceMethod::kAlone:
            return "free: nothing to send";
        case ReduceMethod::kHalving:
            return "free: a ring's bytes";
        case ReduceMethod::kDoubling:
            return "free: small, sent whole to each of log2 W partners";
        case ReduceMethod::kNodes:
            break;
    }
    if (!power_of_two(world.world)) return fmt::format("costs: W = {} is no power of two", world.world);
    if (!power_of_two(shards)) return fmt::format("costs: V = {} is no power of two", shards);
    return "costs: a rank has no sample in a step";
}

bool all_ranks_have_samples(std::span<const int64_t> sizes, int world) {
    for (int rank = 0; rank < world; ++rank) {
        if (maximal_nodes(static_cast<int>(sizes.size()), shards_of_rank(static_cast<int>(sizes.size()), rank, world),
                          sizes)
                .empty())
            return false;
    }
    return true;
}

/// World sizes whose reduction sends no more than it must: where V and W are powers of two and every rank has a sample.
std::vector<int> free_worlds(const ShardPlan& plan) {
    std::vector<int> worlds{1};
    const std::vector<int64_t> sizes = plan.shard_sizes(0);
    while (power_of_two(plan.shards()) && 2 * worlds.back() <= plan.shards() &&
           all_ranks_have_samples(sizes, 2 * worlds.back())) {
        worlds.push_back(2 * worlds.back());
    }
    return worlds;
}

/// The instruction set decides some paddings. Where this machine lacks the one asked for, its own stands in.
Isa isa_to_plan_for(const Config& config) {
    const Isa wanted = isa_of(config.device.isa);
    const std::vector<Isa> here = available_isas();
    if (std::find(here.begin(), here.end(), wanted) != here.end()) return wanted;
    return here.size() > 1 ? Isa::kAuto : Isa::kScalar;
}

class Forecaster {
  public:
    Forecaster(const Config& config, const DataFacts& facts, const ForecastOptions& options, Forecast& forecast,
               const Network& network)
        : config_(config),
          network_(network),
          options_(options),
          plan_(forecast.plan),
          elements_(network.parameters().flat_elements()),
          memory_(config, facts, forecast.plan, network),
          sizes_(forecast.plan.shards.shard_sizes(0)) {}

    WorldForecast of_world(int size) const {
        WorldForecast world;
        world.world = size;
        world.ring_bytes = ring_bytes(elements_ * static_cast<int64_t>(sizeof(float)), size);
        for (int rank = 0; rank < size; ++rank) {
            world.ranks.push_back(of_rank(rank, size));
            const int64_t floats = network_.norm_floats_sent(plan_.shards.shards(), rank, size, sizes_);
            world.norm_bytes = std::max(world.norm_bytes, floats * static_cast<int64_t>(sizeof(float)));
        }
        for (const RankForecast& rank : world.ranks) {
            world.most_samples = std::max(world.most_samples, rank.samples);
            world.idle += rank.shards.empty() ? 1 : 0;
            if (!rank.sent) continue;
            world.bytes_sent = std::max(world.bytes_sent.value_or(0), rank.sent->bytes);
            world.messages = std::max(world.messages.value_or(0), rank.sent->messages);
        }
        world.imbalance =
            static_cast<double>(world.most_samples) * size / static_cast<double>(plan_.shards.batch_size(0));
        if (!world.bytes_sent) {
            world.note = "the transport decides";
            return world;
        }
        const ReduceMethod method = world.ranks.front().sent->method;
        world.free = method != ReduceMethod::kNodes;
        world.note = note_on(world, method, plan_.shards.shards());
        world.last_bytes_sent = world.bytes_sent;
        const std::vector<int64_t> last = plan_.shards.shard_sizes(plan_.steps_per_epoch - 1);
        if (!same_shards_empty(sizes_, last)) world.last_bytes_sent = most_bytes(size, last);
        return world;
    }

  private:
    int64_t most_bytes(int world, std::span<const int64_t> sizes) const {
        int64_t most = 0;
        for (int rank = 0; rank < world; ++rank)
            most = std::max(most, canonical_traffic(config_, elements_, rank, world, sizes).bytes);
        return most;
    }

    RankForecast of_rank(int rank, int world) const {
        RankForecast forecast;
        forecast.rank = rank;
        forecast.shards = shards_of_rank(plan_.shards.shards(), rank, world);
        for (int v = forecast.shards.begin; v < forecast.shards.end; ++v)
            forecast.samples += sizes_[static_cast<std::size_t>(v)];
        if (!forecast.shards.empty())
            forecast.shift_ratio = static_cast<double>(forecast.shards.begin) / plan_.shards.shards();
        if (config_.reduce.algorithm == "canonical")
            forecast.sent = canonical_traffic(config_, elements_, rank, world, sizes_);
        forecast.memory = memory_.of_rank(rank, world);
        const int64_t steps = options_.samples > 0 ? std::min(kForecastSteps, plan_.total_steps) : 0;
        for (int64_t u = 1; u <= steps; ++u)
            forecast.first_indices.push_back(step_indices(config_, plan_, forecast.shards, u, options_.samples));
        return forecast;
    }

    const Config& config_;
    const Network& network_;
    const ForecastOptions& options_;
    const RunPlan& plan_;
    int64_t elements_;
    MemoryPlanner memory_;
    std::vector<int64_t> sizes_;  // of the first step's shards
};

/// As each rank of each world would before its first step.
void check_passes(const Config& config, const RunPlan& plan, const Network& network, std::span<const int> worlds) {
    if (config.batch.micro == 0 || !network.meets_in_step()) return;
    const int shards = plan.shards.shards();
    for (const int64_t step : telling_steps(config, plan)) {
        const std::vector<int64_t> sizes = plan.shards.shard_sizes(step);
        for (const int world : worlds) {
            for (int rank = 0; rank < world; ++rank)
                network.check_passes(shards, shards_of_rank(shards, rank, world), sizes);
        }
    }
}

/// Samples behind a statistic of batch norm: of the smallest batch, or the smallest shard that is not empty.
int64_t norm_samples(const Config& config, const RunPlan& plan, bool global) {
    int64_t least = plan.shards.batch();
    for (const int64_t step : telling_steps(config, plan)) {
        if (global) least = std::min(least, plan.shards.batch_size(step));
        for (const int64_t size : plan.shards.shard_sizes(step)) {
            if (!global && size > 0) least = std::min(least, size);
        }
    }
    return least;
}

}  // namespace

std::vector<int> worlds_to_show(int shards) {
    constexpr int kMost = 64;
    std::vector<int> worlds;
    for (int world = 1; world <= std::min(shards, kMost); world *= 2) worlds.push_back(world);
    if (shards <= kMost && worlds.back() != shards) worlds.push_back(shards);
    return worlds;
}

Forecast make_forecast(const Config& config, const DataFacts& facts, const ForecastOptions& options) {
    const RunPlan plan = make_run_plan(config, facts.samples);
    static_cast<void>(History(config, facts.test_samples + facts.validation_samples > 0, facts.classes));
    Forecast forecast{config.model.name, config.batch.layout, facts, plan, 0, 0, 1, {}, false, {}, {}, {}};
    forecast.last_batch = plan.shards.batch_size(plan.steps_per_epoch - 1);
    forecast.threads = config.device.threads > 0 ? static_cast<int>(config.device.threads) : available_cpus();
    const auto backend = make_cpu_backend({isa_to_plan_for(config), forecast.threads});
    const Network network(model_spec(config, facts.shape, facts.classes, facts.columns), *backend, config.batch.micro);
    forecast.parameters = network.parameters().trainable();
    if (!options.any_passes) check_passes(config, plan, network, options.worlds);
    if (network.has_batch_norm()) {
        forecast.norm_global = network.meets_in_step();
        forecast.norm_samples = norm_samples(config, plan, forecast.norm_global);
    }
    forecast.optimizer = optimizer_text(config);
    forecast.rates_note = rates_note(config);
    forecast.rates = learning_rates(Schedule(schedule_spec(config, plan)), plan, options.lr_at);
    forecast.native = config.reduce.algorithm == "native";
    if (!forecast.native) forecast.free_worlds = free_worlds(plan.shards);
    const Forecaster forecaster(config, facts, options, forecast, network);
    for (const int world : options.worlds) forecast.worlds.push_back(forecaster.of_world(world));
    return forecast;
}

}  // namespace lockstep
