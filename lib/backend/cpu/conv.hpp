// Convolutions of the CPU backend: plans over the kernels of gemm_kernel and conv_wgrad_kernel, or the scalar
// reference.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"

namespace lockstep {

/// Throws kUsage for a shape that is none: no output position, channels that the groups do not divide. The context must
/// outlive it. `relu`: forward ends in relu; backward takes dy as it is.
std::unique_ptr<Conv> make_cpu_conv(CpuContext& context, const ConvShape& shape, bool relu, bool backward_data);

}  // namespace lockstep
