// The calling thread's errors, for the C functions that ask for them.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace lockstep::emulation {

/// What every function returns without a driver or a device; else cudaSuccess.
cudaError_t driver_error();

/// The sticky error of the thread's device, else its last error, which is forgotten unless `keep`.
cudaError_t take_last_error(bool keep);
void forget_errors();

/// Why the thread last got this error; "" if nothing is known.
std::string reason_of(cudaError_t code);

}  // namespace lockstep::emulation
