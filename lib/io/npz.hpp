// NumPy's .npz (a zip of .npy members), written so that equal weights give equal bytes.
#pragma once

#include <string>
#include <vector>

#include "io/safetensors.hpp"

namespace lockstep {

/// One stored (not deflated) "<name>.npy" a tensor, in order, fixed time stamp. Atomic.
void write_npz(const std::string& path, const std::vector<TensorView>& tensors);

}  // namespace lockstep
