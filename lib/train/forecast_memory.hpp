// What a rank will hold in memory, part by part, asked of the parts themselves.
#pragma once

#include "backend/backend.hpp"
#include "train/forecast.hpp"

namespace lockstep {

class MemoryPlanner {
  public:
    /// All of them must outlive it.
    MemoryPlanner(const Config& config, const DataFacts& facts, const RunPlan& plan, const Network& network);
    MemoryForecast of_rank(int rank, int world) const;

  private:
    int64_t exchange(int rank, int world) const;
    int64_t moments(int rank, int world) const;
    int64_t pass_sums(ShardRange local) const;
    int64_t activations(ShardRange local) const;
    int64_t loader(ShardRange local) const;
    int64_t evaluated_samples() const;  // of the largest split that is evaluated

    const Config& config_;
    const DataFacts& facts_;
    const RunPlan& plan_;
    const Network& network_;
    std::vector<std::vector<int64_t>> sizes_;  // of the V shards: every pattern that occurs in a step
    UpdateBytes update_;
};

}  // namespace lockstep
