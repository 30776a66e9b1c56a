// Requests to stop. USR1, TERM and INT set a flag that the trainer reads between steps; a second TERM or INT leaves at
// once. Installed by the executable before MPI starts.
#pragma once

namespace lockstep {

/// Installs the handlers for USR1, TERM and INT. Once a process.
void install_stop_handlers();

/// The first signal that asked this process to stop, or 0.
int stop_signal();

}  // namespace lockstep
