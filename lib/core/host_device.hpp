// LOCKSTEP_HOST_DEVICE before an inline function: kernels of a GPU call it too, so that a definition that both must
// follow exists once. Such a function uses numbers and std::fma only (with -fmad=false both sides round alike).
#pragma once

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif
