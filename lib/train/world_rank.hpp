// One rank of a world of `verify`: an engine whose steps are turned into digests.
#pragma once

#include <memory>
#include <optional>

#include "train/device.hpp"
#include "train/step_engine.hpp"
#include "train/tensor_hash.hpp"
#include "train/world_run.hpp"

namespace lockstep {

class WorldRank final : private StepWatcher {
  public:
    /// Collective over `comm`, the world's.
    WorldRank(Communicator& comm, const WorldTask& task, const WorldCast& cast, const std::optional<Fault>& fault);

    StepDigest step();
    PlaceValues values(const StatePlace& place);

  private:
    void batch_read(const Batch& batch) override;
    PlaceValues tensor_values(int number);

    Config config_;
    ShardRange shards_;
    TrainOptions options_;
    DeviceChoice device_;
    std::optional<StepEngine> engine_;
    std::optional<TensorHasher> hasher_;
    std::optional<FaultPlanter> fault_;
    std::vector<std::vector<int64_t>> indices_;  // of each of this rank's shards, in the last step
    float loss_ = 0;
    ExchangeEndsFirst ends_first_{device_};  // the last member: the first to go
};

}  // namespace lockstep
