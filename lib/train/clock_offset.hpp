// How far a rank's clock is from rank 0's, so that times of several hosts can be laid on one axis.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

struct ClockOffset {
    int64_t ns = 0;              // rank 0's clock = this rank's + ns
    int64_t uncertainty_ns = 0;  // at most that far off: half the quickest message there and back
};

/// Asks rank 0 for its time a few times and believes the quickest answer, whose moment is known best (Cristian's
/// algorithm). Ranks that name the same `clock` as rank 0 read the same one: their offset is 0. Collective.
ClockOffset clock_offset(Communicator& comm, const std::string& clock, FunctionRef<int64_t()> now_ns);

/// Nanoseconds of the monotonic clock, and a name that two processes share where they read the same one: the running
/// kernel, and the time namespace of the process.
int64_t monotonic_ns();
std::string monotonic_clock_name();

}  // namespace lockstep
