// How a rank waits: at first spinning (a message takes microseconds when both ranks have a core), then giving up the
// core (two spinning ranks on one core cost each other whole time slices), then in naps, and not for ever.
#pragma once

#include <chrono>

#include "comm/communicator.hpp"

namespace lockstep {

/// One wait, or several in a row: call pause() after every poll that moved nothing and restart() after one that did.
class Patience {
  public:
    explicit Patience(Communicator& comm);
    /// `peer`: whose answer is missing, -1 if that cannot be said. Past the communicator's timeout throws kRuntime
    /// naming the ranks that are silent: the peer, or the one that it says to wait for in turn. A rank that says that
    /// it is at work is waited for, and time in which this rank itself was stopped blames nobody. Throws PeerFailed as
    /// soon as another rank says that it has failed.
    void pause(int peer);
    void restart() { waiting_ = false; }

  private:
    using Clock = std::chrono::steady_clock;
    void look_around(int peer, Clock::time_point now, double waited);
    void judge(int peer, Clock::time_point now, double waited);

    Communicator& comm_;
    Communicator& job_;  // whose deadline and news count
    bool waiting_ = false;
    Clock::time_point start_;
    Clock::time_point last_work_{};  // of others, as they said, past the deadline
    Clock::time_point last_;         // pause() before this one
    bool crowded_;                   // more ranks than CPUs on this host
    bool contested_ = false;         // somebody else wants this core
    double next_look_s_ = 0;
    double next_announcement_s_ = 0;
    double next_warning_s_ = 0;
};

}  // namespace lockstep
