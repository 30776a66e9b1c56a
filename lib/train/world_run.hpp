// A world of `verify` as far as this process takes part in it: one of its ranks, or all of them as threads. Both go on
// step by step, so that worlds side by side can be compared after each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "train/fault.hpp"
#include "train/initial_weights.hpp"
#include "train/settings.hpp"
#include "train/world_digest.hpp"
#include "train/world_plan.hpp"

namespace lockstep {

/// What is trained; it must outlive the worlds.
struct WorldTask {
    const Config& config;
    const RunPlan& plan;
    const Dataset& data;
    const InitialWeights& weights;
};

/// The numbers behind a place, in the order of the files.
struct PlaceValues {
    std::string name;            // "fc1.weight", "momentum/fc1.weight", "loss", "indices of shard 3"
    std::vector<int64_t> shape;  // of a tensor
    std::size_t width = 4;       // bytes of a number: 4 = fp32, 8 = an index
    std::vector<std::byte> bytes;
};

class WorldRun {
  public:
    virtual ~WorldRun() = default;
    /// One update of the world; what each of its ranks here then holds, in order of ranks.
    virtual std::vector<StepDigest> step() = 0;
    /// Of the step done last. `rank`: counted among those that are here.
    virtual PlaceValues values(int rank, const StatePlace& place) = 0;
};

/// The world's start, on all its ranks of the job together. `number` counts the worlds so far on these ranks. Throws
/// SharedError for what stops all ranks of the world.
std::unique_ptr<WorldRun> start_world(Communicator& job, const WorldTask& task, const WorldCast& cast,
                                      const std::optional<Fault>& fault, int number);

}  // namespace lockstep
