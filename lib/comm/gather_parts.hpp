// What every rank holds of an array, brought to all ranks, where all know how much each holds: no lengths are sent, and
// nothing is allocated.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.hpp"

namespace lockstep {

/// all: the parts of rank 0, 1, … one behind the other, of counts[r] floats; on entry this rank's own is in place.
/// Collective; about log2(world) rounds of at most two messages each way.
void gather_parts(Communicator& comm, std::span<const int64_t> counts, std::span<float> all);

/// What rank `rank` sends of parts of these lengths.
int64_t parts_sent(std::span<const int64_t> counts, int rank);

}  // namespace lockstep
