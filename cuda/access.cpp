// The error check behind every CUDA call, and the switch that makes launches wait. Compiled by the host compiler in the
// product and in the emulated build alike.
#include "cuda/access.h"

#include <atomic>
#include <cstring>

#include "core/error.hpp"

namespace lockstep {
namespace {

// One switch for the process: the seam is called from kernels' launchers that know no backend object.
std::atomic<bool> debug_sync{false};

const char* file_name(const std::source_location& where) {
    const char* slash = std::strrchr(where.file_name(), '/');
    return slash ? slash + 1 : where.file_name();
}

}  // namespace

void cuda_check(cudaError_t status, const char* call, std::source_location where) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // an error that is not sticky must not be found again by an innocent later call
    fail(ErrorKind::kRuntime, "{} at {}:{}: {} ({}, CUDA error {})", call, file_name(where), where.line(),
         cudaGetErrorString(status), cudaGetErrorName(status), static_cast<int>(status));
}

void set_debug_sync(bool on) {
    debug_sync.store(on, std::memory_order_relaxed);
}

void after_launch(cudaStream_t stream, std::source_location where) {
    if (!debug_sync.load(std::memory_order_relaxed)) return;
    cuda_check(cudaStreamSynchronize(stream), "kernel launched", where);
}

}  // namespace lockstep
