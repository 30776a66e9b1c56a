// Pooling on the CPU: the rows of an operation dealt to threads.
#pragma once

#include <memory>

#include "backend/arithmetic.hpp"
#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"
#include "backend/pool_windows.hpp"

namespace lockstep {

/// The operation, checked. The context must outlive it.
std::unique_ptr<Pool> make_cpu_pool(CpuContext& context, const PoolShape& shape);

}  // namespace lockstep
