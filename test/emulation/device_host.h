// The part of the CUDA C++ language that kernels use, for a host compiler: built-in variables, barriers, shared memory,
// warp operations, atomics and intrinsics. Each thread of a block runs the kernel as plain C++ on a fiber; what blocks
// hands over to the block interpreter (block.hpp). Reached through "cuda/device.h" only.
#pragma once

#include <cuda_runtime.h>

#include "test/emulation/device_intrinsics.h"
#include "test/emulation/kernel_call.hpp"

#define threadIdx (::lockstep::emulation::position.thread)
#define blockIdx (::lockstep::emulation::position.block)
#define blockDim (::lockstep::emulation::position.block_dim)
#define gridDim (::lockstep::emulation::position.grid_dim)
inline constexpr int warpSize = 32;

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ use_LS_SHARED_or_LS_DYN_SHARED_instead_of___shared__

#define __syncthreads() ::lockstep::emulation::barrier(__FILE__, __LINE__)

// The address of the static variable is the identity of the declaration, one for each instantiation of a template.
#define LS_SHARED(T, name, n)            \
    static const char name##_identity{}; \
    T* const name = static_cast<T*>(::lockstep::emulation::static_shared(&name##_identity, sizeof(T) * (n), alignof(T)))
#define LS_DYN_SHARED(T, name) T* const name = static_cast<T*>(::lockstep::emulation::dynamic_shared())

template <class T>
T __shfl_sync(unsigned mask, T value, int source) {
    return lockstep::emulation::shuffle(mask, value, source & 31);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
    return lockstep::emulation::shuffle(mask, value, static_cast<int>(lockstep::emulation::lane()) ^ lanes);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
    const unsigned own = lockstep::emulation::lane();
    return lockstep::emulation::shuffle(mask, value, static_cast<int>(own + delta < 32 ? own + delta : own));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
    const unsigned own = lockstep::emulation::lane();
    return lockstep::emulation::shuffle(mask, value, static_cast<int>(own >= delta ? own - delta : own));
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return lockstep::emulation::ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    lockstep::emulation::ballot(mask, false);
}
