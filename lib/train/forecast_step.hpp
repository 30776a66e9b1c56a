// What one rank reads and sends in one step, told without reading or sending: the shards of its rank, the order of the
// epoch and the plan of messages, asked as the trainer's loader and reducer ask them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce_plan.hpp"
#include "config/config.hpp"
#include "train/settings.hpp"

namespace lockstep {

/// What a rank sends of gradients in a step, and the scratch memory that it needs for it.
struct Traffic {
    ReduceMethod method = ReduceMethod::kAlone;  // of the largest bucket: smaller ones may be doubled instead of halved
    int64_t bytes = 0;                           // padding between tensors included
    int64_t messages = 0;
    int64_t scratch_bytes = 0;
    bool operator==(const Traffic&) const = default;
};

/// Of the canonical reducer. What it sends depends on which of the V shards are empty (`sizes`), not on how full they
/// are. `elements`: of the flat gradient.
Traffic canonical_traffic(const Config& config, int64_t elements, int rank, int world, std::span<const int64_t> sizes);

/// Indices in the data set of the samples that the shards `local` use in update u (1-based), in the order in which they
/// are read; the first `most` of them.
std::vector<int64_t> step_indices(const Config& config, const RunPlan& plan, ShardRange local, int64_t update,
                                  int64_t most);

/// Steps of an epoch (0-based) among which every pattern of shard sizes occurs. Layout batch: the first and the last.
/// Layout epoch repeats after at most V steps, but for the last ones; of more than 64 shards, the first and last 64
/// steps.
std::vector<int64_t> telling_steps(const Config& config, const RunPlan& plan);

}  // namespace lockstep
