// The GPUs that this process sees, and the versions of what drives them.
#pragma once

#include <vector>

#include "cuda/plugin.hpp"

namespace lockstep {

/// The oldest GPUs that the kernels are compiled for: Ampere.
inline constexpr int kOldestMajor = 8;

std::vector<GpuFacts> list_gpus();
CudaVersions cuda_versions();

}  // namespace lockstep
