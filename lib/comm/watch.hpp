// What a rank knows of the others while it waits: short news that travel outside the order of messages. From them it
// tells a rank that is at work, or waits in turn, from one that is silent, and stops at once when another one has
// failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/error.hpp"

namespace lockstep {

struct News {
    enum class Kind : int32_t {
        kWorks,  // at work: whoever waits for it goes on waiting
        kWaits,  // for `peer` (-1: for some rank), since `value` seconds
        kFails,  // has an error of its own, at time `value` (seconds since 1970)
        kPace,   // own work of a step lately, in `value` seconds
    };
    Kind kind = Kind::kWorks;
    int32_t peer = -1;
    double value = 0;
};

/// What ends a rank because another one has failed and tells the reason itself.
class PeerFailed : public Error {
  public:
    explicit PeerFailed(int own)
        : Error(ErrorKind::kRuntime, fmt::format("rank {} stops since another rank has failed", own)) {}
    PeerFailed(int own, int failed)
        : Error(ErrorKind::kRuntime, fmt::format("rank {} stops since rank {} has failed", own, failed)) {}
};

/// Ranks that have failed so far, this one included.
struct Failures {
    int count = 0;
    int first = -1;  // by their clocks
};

class Watch {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Watch(int own, int ranks) : own_(own), ranks_(static_cast<std::size_t>(ranks)) {}

    void hear(int rank, const News& news, Clock::time_point now);

    /// Judges a wait for `peer` (-1: for some rank) since `start`.
    struct Verdict {
        std::vector<int> silent;  // whoever is to blame; none: wait on
        std::vector<int> chain;   // the first silent one is waited for through these
        bool wait_for_each_other = false;
        int at_work = -1;  // whom the wait is for in the end, or may be, if somebody says so
    };
    Verdict judge(int peer, Clock::time_point start, Clock::time_point now, double timeout) const;

    /// Books this rank's own failure, too.
    void fail(int rank, double time);
    Failures failures() const;
    /// The last pace that each rank told since this was asked last; 0 = none.
    std::vector<double> take_paces();

  private:
    struct Rank {
        Clock::time_point heard{};  // the last sign of life
        News::Kind doing = News::Kind::kWorks;
        int waits_for = -1;
        Clock::time_point waits_since{};
        double failed = 0;  // when
        double pace = 0;
    };
    const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

    int own_;
    std::vector<Rank> ranks_;
};

}  // namespace lockstep
