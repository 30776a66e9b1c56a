// Finds and loads Lockstep's CUDA library, where a GPU is wanted and not before.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/plugin.hpp"

namespace lockstep {

/// Whether this machine looks as if it had a GPU: NVIDIA's driver is there, or the library is named by
/// LOCKSTEP_DEBUG_CUDA_PLUGIN. Cheap, and may be wrong.
bool gpu_may_be_here();

/// Where the library is looked for, in order: the file that LOCKSTEP_DEBUG_CUDA_PLUGIN names, alone; else beside the
/// executable, and in the folder of libraries that it is installed with.
std::vector<std::string> cuda_library_places();

/// Throws kUsage with the loader's words where it is absent or cannot be loaded, and where it is of another build than
/// this executable. Once loaded it stays: what it made may outlive the CudaPlugin.
std::unique_ptr<CudaPlugin> load_cuda_library();

}  // namespace lockstep
