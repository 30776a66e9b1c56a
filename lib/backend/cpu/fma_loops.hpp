// How the scalar reference gets its fma: plain loops that call std::fma, compiled for a processor with an fma
// instruction and for one without. The bits are the same; a call into libm for every product is three times slower.
#pragma once

#include <cmath>

#define LOCKSTEP_ALWAYS_INLINE __attribute__((always_inline))

namespace lockstep {

#if defined(__x86_64__)
template <class Loops>
__attribute__((target("fma"))) void run_with_fma_instruction(const Loops& loops) {
    loops();
}
#endif

/// Calls `loops`, a lambda marked LOCKSTEP_ALWAYS_INLINE, so that its std::fma is one instruction where the processor
/// has it. What it calls must be marked, too.
template <class Loops>
void run_with_fma(const Loops& loops) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) return run_with_fma_instruction(loops);
#endif
    loops();
}

}  // namespace lockstep
