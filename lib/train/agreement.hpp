// Errors that all ranks must share: what fails on one rank before the first step stops all of them, alike and without a
// hang.
#pragma once

#include <exception>
#include <string>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "core/function_ref.hpp"

namespace lockstep {

/// Thrown on every rank alike, so that rank 0 reports it and all leave in order; any other error is one rank's own,
/// which reports it and ends the world.
class SharedError : public Error {
  public:
    SharedError(ErrorKind kind, const std::string& message, bool positioned = false)
        : Error(kind, message), positioned_(positioned) {}
    /// Its lines begin with file:line:column, which people click on: nothing may stand before them.
    bool positioned() const { return positioned_; }

  private:
    bool positioned_;
};

std::string host_name();

/// What to say of an exception that is no Error: of the file system's its path and reason.
std::string message_of(const std::exception& error);

/// Runs `phase` on every rank; if it threw on any, throws the lowest such rank's error on all, naming rank and host
/// where not all ranks say the same. Collective.
void agree(Communicator& comm, FunctionRef<void()> phase);

/// Runs `phase` on rank 0 alone; its error is thrown on all ranks. Collective.
void agree_on_first(Communicator& comm, FunctionRef<void()> phase);

}  // namespace lockstep
