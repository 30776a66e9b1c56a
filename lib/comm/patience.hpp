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
    /// naming the rank that is silent: the peer, or the one that it says to wait for in turn.
    void pause(int peer);
    void restart() { waiting_ = false; }

  private:
    using Clock = std::chrono::steady_clock;
    [[noreturn]] void give_up(int peer);

    Communicator& comm_;
    bool waiting_ = false;
    Clock::time_point start_;
    bool crowded_;            // more ranks than CPUs on this host
    bool contested_ = false;  // somebody else wants this core
    double next_announcement_s_ = 0;
};

}  // namespace lockstep
