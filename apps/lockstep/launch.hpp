// How this process came to be: alone, or as one of the ranks that a launcher started. The one place that chooses a
// Communicator, and the one place where an error of a rank becomes the end of the world.
#pragma once

#include "comm/communicator.hpp"
#include "commands.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

/// Started by mpirun, srun --mpi=pmix or another launcher that speaks MPI.
bool under_launcher();

/// Runs `body` as this process's rank and returns the exit code. Without a launcher MPI stays uninitialised. All ranks
/// must have been given one command. An error
/// that all ranks share is printed by rank 0; a rank's own is printed by that rank, with rank and host, and ends the
/// whole world. Throws kUsage where a launcher that does not know MPI started several processes that would each work
/// alone.
int run_as_rank(const Invocation& invocation, bool allow_singleton, FunctionRef<int(Communicator&)> body);

/// An action that works with files alone and says what it found: of several ranks the first one does it, and all leave
/// with its exit code.
std::function<int()> on_first_rank(const Invocation& invocation, std::function<int()> action);

}  // namespace lockstep
