// What a logical worker reads in an epoch under given rules, as a data set of its own that Lockstep's loader reads in
// order: places in the data set and in the epoch's shuffled order, made by a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.hpp"
#include "data/loader.hpp"
#include "data/shard_plan.hpp"
#include "explain/worker_rules.hpp"

namespace lockstep {

/// The order of the epochs: of data.shuffle and the seed.
struct EpochOrders {
    uint64_t seed = 1;
    Shuffle shuffle = Shuffle::kFull;
    int64_t block = 1024;
    int64_t samples = 0;
};

struct WorkerEpoch {
    std::vector<int64_t> indices;    // places in the data set, in the order of reading
    std::vector<int64_t> positions;  // places in the order of the epoch
};

/// `job`: the batches of one machine, whose rows, in the order of its shards, kDealt cuts into W parts and `turns`
/// deals whole.
WorkerEpoch read_by_worker(const WorkerRules& rules, const EpochOrders& orders, const ShardPlan& job, int worker,
                           int64_t epoch);

/// Some samples of another data set, in some order.
class SampleView : public Dataset {
  public:
    SampleView(const Dataset& base, std::vector<int64_t> indices) : base_(base), indices_(std::move(indices)) {}
    int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
    SampleShape shape() const override { return base_.shape(); }
    int classes() const override { return base_.classes(); }
    std::vector<Column> columns() const override { return base_.columns(); }
    int32_t read(int64_t index, std::span<float> pixels) const override { return base_.read(at(index), pixels); }
    int32_t read_crop(int64_t index, const RandomCrop& crop, std::span<float> pixels) const override {
        return base_.read_crop(at(index), crop, pixels);
    }
    int32_t label(int64_t index) const override { return base_.label(at(index)); }
    std::string fingerprint() const override { return base_.fingerprint(); }

  protected:
    const Dataset& base() const { return base_; }
    int64_t at(int64_t index) const { return indices_[static_cast<std::size_t>(index)]; }

  private:
    const Dataset& base_;
    std::vector<int64_t> indices_;
};

}  // namespace lockstep
