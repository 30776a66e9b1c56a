// Who reads what: the batches of an epoch and the shards of a batch, as pure functions. The loader, `plan`, `verify`
// and the tests all call these. Nothing here knows a rank: a rank computes whole shards (core/canonical_tree.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "core/canonical_tree.hpp"

namespace lockstep {

enum class Layout { kBatch, kEpoch };
enum class LastBatch { kKeep, kDrop };

/// Positions [first, first + count) of the epoch's order.
struct PositionRange {
    int64_t first = 0;
    int64_t count = 0;
    bool operator==(const PositionRange&) const = default;
};

class ShardPlan {
  public:
    /// N samples, global batch B, V shards. Throws kUsage for drop with N < B.
    ShardPlan(int64_t samples, int64_t batch, int shards, Layout layout, LastBatch last);

    int64_t samples() const { return samples_; }
    int64_t batch() const { return batch_; }
    int shards() const { return shards_; }
    int64_t steps_per_epoch() const;         // ceil(N/B), or floor when dropping
    int64_t samples_per_epoch() const;       // N, or steps * B when dropping
    int64_t batch_size(int64_t step) const;  // b of step 0 … steps_per_epoch()-1
    /// The positions of shard v in a step. May be empty.
    PositionRange shard(int64_t step, int v) const;
    /// count of shard(step, v) for all v.
    std::vector<int64_t> shard_sizes(int64_t step) const;
    void shard_sizes(int64_t step, std::vector<int64_t>& out) const;  // without allocating once out has room

  private:
    int64_t samples_, batch_;
    int shards_;
    Layout layout_;
    LastBatch last_;
};

/// Where an update stands: epoch (0-based), step in it (0-based), and its number u (1-based).
struct StepPosition {
    int64_t epoch;
    int64_t step;
    int64_t update;
};
StepPosition step_position(int64_t update, int64_t steps_per_epoch);

}  // namespace lockstep
