// Errors that all ranks must share: what fails on one rank before the first step stops all of them, alike and without a
// hang.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

/// Thrown on every rank alike, so that rank 0 reports it and all leave in order; any other error is one rank's own,
/// which reports it and ends the world.
class SharedError : public Error {
  public:
    using Error::Error;
};

std::string host_name();

/// Runs `phase` on every rank; if it threw on any, throws the lowest such rank's error on all, naming rank and host
/// where not all ranks say the same. Collective.
void agree(Communicator& comm, FunctionRef<void()> phase);

/// Runs `phase` on rank 0 alone; its error is thrown on all ranks. Collective.
void agree_on_first(Communicator& comm, FunctionRef<void()> phase);

}  // namespace lockstep
