// Requests to stop. USR1, TERM and INT set a flag that the trainer reads between steps; a second TERM or INT leaves at
// once. Installed by the executable before MPI starts, and removed when there is nothing left to stop.
#pragma once

namespace lockstep {

/// Installs the handlers for USR1, TERM and INT. Once a process.
void install_stop_handlers();

/// Only the rank that prints says that it was asked to stop.
void let_stop_handlers_speak(bool speak);

/// From here on no checkpoint follows: USR1 has come too late, TERM and INT end the process without a word. mpirun
/// sends TERM to all ranks that are still about when the first has left with an error: that is no request to be
/// answered.
void remove_stop_handlers();

/// The first signal that asked this process to stop, or 0.
int stop_signal();

}  // namespace lockstep
