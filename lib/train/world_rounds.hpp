// The worlds of one verification, round after round. Every rank of the job goes through the same steps at the same
// time, also those that have no world in a round: so nobody waits longer than for one step, all see the digests of all,
// and a world that leaves the reference stops with the values that show it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "train/verification.hpp"
#include "train/world_run.hpp"

namespace lockstep {

class WorldRounds {
  public:
    /// `task` must outlive it.
    WorldRounds(Communicator& job, const WorldTask& task, const std::vector<WorldCast>& casts, int64_t steps,
                const std::optional<Fault>& fault);

    /// Collective. Throws SharedError(kNonFinite) where the reference cannot finish a step before anything differs.
    Verification run();

  private:
    using Digests = std::vector<StepDigest>;
    struct World {
        WorldResult result;
        std::optional<PlaceValues> own;        // on the rank of the job that holds the rank that left
        std::optional<PlaceValues> reference;  // where that is side by side
    };

    void run_round(int round);
    std::vector<Digests> exchange(const Digests& own);
    Digests digests_of(std::size_t world, const std::vector<Digests>& all) const;
    bool judge(std::size_t world, int64_t step, const Digests& digests);
    bool goes_on(std::size_t world) const;
    void keep_values(std::size_t world, WorldRun* run);
    PlaceValues replayed_reference(const Departure& departure, bool& strayed);
    std::optional<WorldDifference> first_difference_of_all();

    const WorldCast& cast(std::size_t world) const { return worlds_[world].result.cast; }
    int holder(std::size_t world, int rank) const;
    int reference_rank(const StatePlace& place) const;

    Communicator& job_;
    const WorldTask& task_;
    int64_t steps_;
    std::optional<Fault> fault_;
    int rounds_ = 0;
    std::vector<World> worlds_;  // as in the list; the first is the reference
    Digests reference_;          // after each step
};

}  // namespace lockstep
