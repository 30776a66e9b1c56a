// The equality matrix: a run in several legs, each at another number of ranks and each but the last stopped at a random
// step, must leave what one rank leaves that never stops. A few journeys start, end and pass at every number of ranks.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "train/legs.hpp"

namespace lockstep::test {

/// Ranks of the legs of one run.
using Journey = std::vector<int>;

/// Each of 1, 2, 3, 4 and 8 ranks begins one, and ends one.
inline const std::vector<Journey> kEveryWorld{{8, 3}, {3, 4}, {4, 1}, {1, 2}, {2, 8}};

/// The run on one rank without a stop, in a folder of its own; kept to compare many journeys with.
class Voyage {
  public:
    Voyage(const Config& config, const DataSplits& data);

    /// What differs after the journey, with where it stopped: "" if nothing does. `change` is made of every rank of
    /// every leg.
    std::string differences_after(const Journey& journey, std::mt19937& random, const RankChange& change = {}) const;
    const RunFiles& whole() const { return whole_; }
    int64_t steps() const { return steps_; }  // fewer than were asked for, where the run ends early

  private:
    const Config& config_;
    const DataSplits& data_;
    RunFiles whole_;
    int64_t steps_ = 0;
};

/// Checks, as an assertion of the running test case, that nothing differs after any of the journeys.
void check_journeys(const Config& config, const DataSplits& data, const std::vector<Journey>& journeys = kEveryWorld,
                    unsigned seed = 1, const RankChange& change = {});

}  // namespace lockstep::test
