// What a core can do at most with one instruction set: fused multiply-adds on registers alone.
#pragma once

#include "backend/cpu/cpu_backend.hpp"

namespace lockstep::test {

/// Runs `rounds` x 8,192 multiply-adds of a whole vector in independent chains; returns the floating-point operations
/// done.
double run_fma_chains(Isa isa, int rounds);

}  // namespace lockstep::test
