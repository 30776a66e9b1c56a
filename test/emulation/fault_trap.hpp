// Memory faults of kernels, caught and reported as the device's sticky error instead of ending the process, as a GPU
// does; and a clear line for host code that follows a device pointer, which does end the process.
#pragma once

#include <functional>

namespace lockstep::emulation {

/// Installs the signal handlers (again, if someone replaced them). Called before every piece of work and by every call
/// that hands out addresses; cheap.
void install_fault_handlers();

/// Gives the calling thread a stack for signal handlers, so that an overrun of a fiber's stack can be reported.
void use_signal_stack();

/// Runs work on an executor thread. A memory fault, a misaligned address or an integer division by zero inside it
/// becomes a Fault; what the work held is lost, as on a device. In a build with AddressSanitizer the sanitizer reports
/// the exact line and ends the process.
void run_trapped(const std::function<void()>& work);

}  // namespace lockstep::emulation
