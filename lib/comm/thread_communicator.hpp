// Ranks as threads of one process: for tests, and for worlds larger than the job (`verify`).
#pragma once

#include "comm/communicator.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

/// Runs body(communicator) on `world` threads, one a rank, and joins them. When a rank throws, the others' waits throw
/// too, and the first exception of the lowest rank that failed by itself is rethrown.
void run_thread_world(int world, FunctionRef<void(Communicator&)> body);

}  // namespace lockstep
