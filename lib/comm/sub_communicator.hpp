// Some of a job's ranks as a world of their own: `verify` splits a job so and trains in each part. Several such worlds
// may be at work side by side.
#pragma once

#include <memory>

#include "comm/communicator.hpp"

namespace lockstep {

/// Ranks [first, first + size) of `job`, this rank among them, numbered from 0. Collective over those ranks, which tell
/// each other their hosts. `number` counts the worlds that use these ranks one after the other: messages of one are
/// never taken for another's. The job must outlive it and may be used between its calls, with nothing under way; waits
/// have the job's deadline and name the job's ranks.
std::unique_ptr<Communicator> make_sub_communicator(Communicator& job, int first, int size, int number);

}  // namespace lockstep
