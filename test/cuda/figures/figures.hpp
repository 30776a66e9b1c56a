// What scripts/gpu_check.sh measures of a GPU and of NVIDIA's libraries that no training tells: each a function that
// prints lines and returns whether all was as it must be. The same source runs on the emulation, where times mean
// nothing and the steps are all the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep::figures {

/// Of each different convolution of a model at a shard of `rows` samples: what cuDNN takes, and, with `repetitions`,
/// the microseconds of each pass. False where cuDNN has none that may be taken.
bool convolutions(const std::string& model, int rows, CudaPrecision precision, int repetitions);

/// Whether products of cuBLAS give the same bits on streams at work at once as on one alone: with a handle and a
/// workspace for each stream, as the backend has them (must be), and with cuBLAS's own workspace (for information).
bool products(CudaPrecision precision, int rounds);

/// What launching costs, and bytes a second: within the device, to it and from it. `megabytes`: of each array.
bool machine(int megabytes);

/// Seconds of `work`, queued `repetitions` times on a stream, until the device is done; once before, uncounted.
template <class Work>
double seconds_of(cudaStream_t stream, int repetitions, Work work) {
    work();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repetitions; ++i) work();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repetitions;
}

}  // namespace lockstep::figures
