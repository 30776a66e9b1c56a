// Which rank holds the others up. Every rank tells rank 0 now and then how long its own work takes; the slowest is
// named to people. Nothing of it reaches a number of the run, and no rank waits for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

struct Straggler {
    int rank = 0;
    double step_s = 0;   // its own work of a step
    double usual_s = 0;  // what the others would take for as many shards
    double lost = 0;     // share of the time that all others wait for it
};

/// Of ranks that take step_s[r] seconds a step (0 = not known) for shards[r] shards, in steps that take wall_s: the
/// slowest, if it takes 3 times as long for a shard as the middle one of the others, and a quarter of everybody's time.
std::optional<Straggler> find_straggler(const std::vector<double>& step_s, const std::vector<int>& shards,
                                        double wall_s);

/// `rank 2 on node3 holds the others up: its own work takes 19.8 ms a step, 19.6 times …`
std::string straggler_text(const Straggler& straggler, const std::string& host);

class PaceWatch {
  public:
    using Clock = std::chrono::steady_clock;
    PaceWatch(Communicator& comm, int shards);

    /// After a step of `seconds`, of which this rank waited `waited` for others. On rank 0, once a minute at most: the
    /// rank that holds the others up.
    std::optional<Straggler> after_step(double seconds, double waited);

  private:
    Communicator& comm_;
    std::vector<int> shards_;  // of each rank
    std::chrono::duration<double> window_;
    Clock::time_point window_end_;
    std::optional<Clock::time_point> told_;
    double seconds_ = 0;  // of this window, as are the next two
    double waited_ = 0;
    int64_t steps_ = 0;
};

}  // namespace lockstep
