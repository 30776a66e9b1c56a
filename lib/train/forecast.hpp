// What a config will do at each number of ranks, told before any work: from the config and the facts of its data alone,
// by the very functions that the trainer asks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "data/data_facts.hpp"
#include "train/forecast_step.hpp"
#include "train/settings.hpp"

namespace lockstep {

/// Bytes that a rank holds. Not counted: the program itself and what kernels pack for themselves.
struct MemoryForecast {
    int64_t weights = 0;
    int64_t gradients = 0;    // one sum for each maximal node of the rank, and of passes (batch.micro)
    int64_t optimizer = 0;    // its state, and scratch of the norm
    int64_t exchange = 0;     // what messages arrive in
    int64_t activations = 0;  // the network's arena: the largest step or evaluation
    int64_t loader = 0;       // batches read ahead, of training and of the evaluation between
    int64_t data = 0;         // the data set, where it is held in memory
    int64_t saving = 0;       // rank 0: copies of weights and state, and the files made of them
    int64_t total() const { return weights + gradients + optimizer + exchange + activations + loader + data + saving; }
    bool operator==(const MemoryForecast&) const = default;
};

struct RankForecast {
    int rank = 0;
    ShardRange shards;
    std::optional<double> shift_ratio;  // none for an idle rank
    int64_t samples = 0;                // of the first step
    std::optional<Traffic> sent;        // of the first step; none where the transport decides (native)
    MemoryForecast memory;
    std::vector<std::vector<int64_t>> first_indices;  // of the first steps, as many of each as were asked for
};

struct WorldForecast {
    int world = 1;
    std::vector<RankForecast> ranks;
    // The most of any rank; none where the transport decides.
    std::optional<int64_t> bytes_sent;
    std::optional<int64_t> messages;
    std::optional<int64_t> last_bytes_sent;  // in an epoch's last step, whose batch may leave shards empty
    int64_t ring_bytes = 0;                  // what a ring would send
    int64_t norm_bytes = 0;                  // of batch norm's moments, beside the gradients: the most of any rank
    int64_t most_samples = 0;                // of any rank in the first step
    double imbalance = 1;                    // that, over the mean of the ranks
    int idle = 0;                            // ranks without a shard
    bool free = false;                       // sends what is least for its tree: not whole nodes
    std::string note;                        // what makes it free or costly, in a few words
    std::optional<double> step_seconds;      // measured on request: see forecast_time.hpp
};

struct LearningRate {
    int64_t step;
    float lr;
    bool operator==(const LearningRate&) const = default;
};

struct Forecast {
    std::string model;
    std::string layout;
    DataFacts data;
    RunPlan plan;
    int64_t last_batch = 0;
    int64_t parameters = 0;
    int threads = 1;  // of a rank, as `activations` takes them
    std::vector<LearningRate> rates;
    bool native = false;           // reduce.algorithm: the transport decides what is sent
    std::vector<int> free_worlds;  // world sizes that send no more than they must
    std::vector<WorldForecast> worlds;
    std::string timed_on;                      // machine and device of step_seconds
    std::string rates_note = {};               // what more there is to say of them; else empty
    std::optional<int64_t> norm_samples = {};  // behind a statistic of batch norm, at least; none: no batch norm
    bool norm_global = false;
    std::string optimizer = {};  // the rule of an update, with what it is told
};

struct ForecastOptions {
    std::vector<int> worlds;     // in this order
    int64_t samples = 0;         // first indices of each of the first steps
    std::vector<int64_t> lr_at;  // steps whose learning rate is asked for, too
    bool any_passes = false;     // also of passes that a training would refuse
};
inline constexpr int64_t kForecastSteps = 3;  // the steps whose first indices are shown

/// Throws kUsage where the trainer would, and for a step of lr_at that the run does not have.
Forecast make_forecast(const Config& config, const DataFacts& facts, const ForecastOptions& options);

/// The first step, then: where the rate is piecewise constant the first step of each new value, else the first step of
/// each epoch; the end of the warm-up, the last step, and those asked for.
std::vector<LearningRate> learning_rates(const Schedule& schedule, const RunPlan& plan, std::span<const int64_t> asked);

/// Where the evaluations decide (plateau): how. Else empty.
std::string rates_note(const Config& config);

/// The optimizer's name and what it goes by, but for the learning rate; what is not used is not told.
std::string optimizer_text(const Config& config);

/// World sizes to show when none are asked for: powers of two up to the number of shards, then that number.
std::vector<int> worlds_to_show(int shards);

std::string forecast_text(const Forecast& forecast);
std::string forecast_json(const Forecast& forecast);  // one line

}  // namespace lockstep
