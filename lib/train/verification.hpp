// The proof of the promise on somebody's own cluster: one config, trained for some steps in worlds of several sizes,
// whose samples, loss, weights and optimizer state are compared after every step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "train/fault.hpp"
#include "train/world_digest.hpp"
#include "train/world_plan.hpp"

namespace lockstep {

struct VerifyOptions {
    std::vector<int> worlds;     // empty: 1 … N; one alone is run twice
    int64_t steps = 20;          // fewer where the run ends before
    std::optional<Fault> fault;  // in the last world of the list
};

/// Where a world left the reference.
struct Departure {
    int64_t step = 0;
    int rank = 0;  // of the world; the lowest of those that left
    StatePlace place;
    std::string failure;  // what it said where it could not finish the step
};

struct WorldResult {
    WorldCast cast;
    int64_t steps = 0;    // done
    int64_t samples = 0;  // in them
    double seconds = 0;   // of its first rank, in steps alone
    std::optional<Departure> departure;
};

/// The first difference of all: of the lowest step, then of the first world in the list.
struct WorldDifference {
    std::size_t world = 0;  // place in the list
    Departure departure;
    std::string name;                          // of the tensor, "loss", "indices of shard 3"
    std::vector<int64_t> shape;                // of the tensor
    std::size_t width = 4;                     // 8: indices
    std::optional<ElementDifference> element;  // none where the world could not finish the step
    int64_t elements = 0;                      // of the tensor
    /// The reference was run again for its values and gave others than at first: it is the one that strayed.
    bool reference_strayed = false;
};

struct Verification {
    std::string config;     // its name
    std::string algorithm;  // reduce.algorithm
    int64_t steps = 0;      // compared, where nothing differs
    std::vector<WorldResult> worlds;
    std::optional<WorldDifference> difference;
};

/// Collective. Throws SharedError: kUsage for worlds, steps or a fault that cannot be, kNonFinite where the reference
/// cannot finish a step; what `train` throws at its start.
Verification verify(Communicator& job, LoadedConfig loaded, const VerifyOptions& options);
/// The same on data that are open already.
Verification verify_on(Communicator& job, LoadedConfig loaded, const DataSplits& data, const VerifyOptions& options);

}  // namespace lockstep
