// The GPUs that this process sees, and the versions of what drives them.
#pragma once

#include <vector>

#include "cuda/plugin.hpp"

namespace lockstep {

std::vector<GpuFacts> list_gpus();
CudaVersions cuda_versions();

}  // namespace lockstep
