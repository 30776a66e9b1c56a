// Finding the GPU that a run asked for, or saying in one line why it cannot be used.
#pragma once

#include <cuda_runtime_api.h>

namespace lockstep {

/// The oldest compute capability that the kernels are built for: 8.0 (A100).
inline constexpr int kOldestMajor = 8;

/// Properties of the visible device `number`, after making it current on the calling thread. Throws kUsage where there
/// is no driver, one that is too old for this CUDA runtime, no device, fewer devices, or a device that is too old or
/// taken.
cudaDeviceProp open_device(int number);

}  // namespace lockstep
