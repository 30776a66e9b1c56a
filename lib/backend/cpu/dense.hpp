// Dense layers of the CPU backend: plans over the kernels of gemm_kernel and dense_wgrad_kernel, or the scalar
// reference.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"

namespace lockstep {

/// For fold.rows local samples. The context must outlive it. `relu`: forward ends in relu; backward takes dy as it is.
std::unique_ptr<Dense> make_cpu_dense(CpuContext& context, int in, int out, const FoldProgram& fold, bool relu);

}  // namespace lockstep
