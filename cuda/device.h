// The seam between device code and its two compilers: nvcc for the product, g++ against the host emulation for the
// tests. It offers the launch and shared memory, the two things that g++ cannot express as CUDA C++ does. Included by
// .cu files only. The build target chooses the branch by LOCKSTEP_CUDA_EMULATION, never __CUDACC__: host code is
// compiled by g++ in both builds.
//
//   launch(k_add, grid, block, 0, stream, out(o, n), in(l, n), in(r, n), n);   // a kernel (float*, const float*, ...)
//   LS_SHARED(float, part, 8);        // __shared__ float part[8]
//   LS_DYN_SHARED(float, tile);       // extern __shared__ float tile[], its size given at the launch
//
// `__shared__` itself means nothing to g++ (a private variable of each thread, silently wrong): the macros only.
// Parameters of a kernel are numbers, enums, structs of numbers, and pointers; pointers are wrapped at the launch by
// in, out or inout, and never stand inside a struct or in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <source_location>
#include <type_traits>

#include "cuda/access.h"

#ifdef LOCKSTEP_CUDA_EMULATION
#include "test/emulation/device_host.h"
#else
#define LS_SHARED(T, name, n) __shared__ T name[n]
#define LS_DYN_SHARED(T, name)                                         \
    extern __shared__ __align__(16) unsigned char ls_dynamic_shared[]; \
    T* const name = reinterpret_cast<T*>(ls_dynamic_shared)
#endif

// Before a loop of device code: unrolled whole; not at all.
#ifdef LOCKSTEP_CUDA_EMULATION
#define LS_UNROLL
#define LS_LOOP
#else
#define LS_UNROLL _Pragma("unroll")
#define LS_LOOP _Pragma("unroll 1")
#endif

namespace lockstep {

/// The grid of a launch, made from a dim3 or a number of blocks, with the place where it was written: the place of the
/// launch in every message.
struct LaunchGrid {
    LaunchGrid(dim3 blocks, std::source_location where = std::source_location::current()) : dim(blocks), place(where) {}
    template <class Integer>
    requires std::is_integral_v<Integer> LaunchGrid(Integer blocks,
                                                    std::source_location where = std::source_location::current())
        : dim(static_cast<unsigned>(blocks)), place(where) {}
    dim3 dim;
    std::source_location place;
};

namespace seam {

template <class T>
T bare(T argument) {
    return argument;
}

template <class T, AccessMode kMode>
T* bare(Access<T, kMode> argument) {
    return argument.pointer;
}

template <class T>
inline constexpr bool kIsParameter = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T> ||
                                     (std::is_class_v<T> && std::is_trivially_copyable_v<T>);

}  // namespace seam

/// Runs `kernel` on `stream`. `shared` is the dynamic shared memory in bytes; above kSharedWithoutOptIn the kernel
/// needs allow_shared() first. Throws Error(kRuntime) with the place of the launch where CUDA refuses it.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), LaunchGrid grid, dim3 block, std::size_t shared, cudaStream_t stream,
            Arguments&&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "a launch gives every parameter of its kernel");
    static_assert((!std::is_pointer_v<std::decay_t<Arguments>> && ...),
                  "a pointer is given to a kernel as in(p, n), out(p, n) or inout(p, n)");
    static_assert((!std::is_null_pointer_v<std::decay_t<Arguments>> && ...),
                  "an absent pointer is given to a kernel as in(static_cast<const T*>(nullptr), 0)");
    static_assert((seam::kIsParameter<Parameters> && ...),
                  "parameters of a kernel are numbers, enums, plain structs of numbers, and pointers");
#ifdef LOCKSTEP_CUDA_EMULATION
    cuda_check(emulation::launch(kernel, grid.dim, block, shared, stream, grid.place, arguments...), "kernel launch",
               grid.place);
#else
    cudaLaunchConfig_t config{};
    config.gridDim = grid.dim;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cuda_check(cudaLaunchKernelEx(&config, kernel, seam::bare(arguments)...), "kernel launch", grid.place);
#endif
    after_launch(stream, "kernel launched", grid.place);
}

/// Static and dynamic shared memory that every kernel may use without asking.
inline constexpr std::size_t kSharedWithoutOptIn = 48 << 10;

/// Allows launches of `kernel` on the current device with up to `bytes` of dynamic shared memory, at most what the
/// device offers (sm_80: 163 KiB, sm_90 and sm_100: 227 KiB, less the kernel's static shared memory). Replaces what an
/// earlier call allowed, even if that was more.
template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), std::size_t bytes,
                  std::source_location where = std::source_location::current()) {
    cuda_check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)", where);
}

}  // namespace lockstep
