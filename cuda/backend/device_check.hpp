// Finding the GPU that a run asked for, or saying in one line why it cannot be used.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace lockstep {

/// The oldest GPUs that the kernels are compiled for: Ampere, compute capability 8.0.
inline constexpr int kOldestMajor = 8;

/// "13.0" of 13000, CUDA's way to write it.
std::string cuda_version_text(int version);

/// How many GPUs this process sees, at least 1. Throws kUsage where there is no driver, one that is too old for this
/// CUDA runtime, or no GPU.
int count_devices();

/// Properties of the visible device `number`, after making it current on the calling thread. Throws kUsage as
/// count_devices() does, and where there are fewer devices, or where it is too old or taken.
cudaDeviceProp open_device(int number);

}  // namespace lockstep
