// The CPU backend: kernels of our own (Highway, chosen at run time), a pool of threads, no BLAS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

enum class Isa { kAuto, kAvx2, kAvx512, kNeon, kScalar };

struct CpuOptions {
    Isa isa = Isa::kAuto;
    int threads = 1;
};

/// Throws kUsage where the machine lacks the instruction set asked for, or a CPU without FMA (naming "scalar" as the
/// way out).
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

/// Targets that this machine can run, "scalar" included: what tests loop over.
std::vector<Isa> available_isas();
const char* isa_name(Isa isa);

}  // namespace lockstep
