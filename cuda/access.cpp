// The error check behind every CUDA call, and the switch that makes launches wait. Compiled by the host compiler in the
// product and in the emulated build alike.
#include "cuda/access.h"

#include <atomic>
#include <cstring>

#include "backend/out_of_memory.hpp"
#include "core/bytes_text.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

// One switch for the process: the seam is called from kernels' launchers that know no backend object.
std::atomic<bool> debug_sync{false};

}  // namespace

std::string place_text(const std::source_location& where) {
    const char* const slash = std::strrchr(where.file_name(), '/');
    return fmt::format("{}:{}", slash ? slash + 1 : where.file_name(), where.line());
}

void cuda_check(cudaError_t status, const char* call, std::source_location where) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // an error that is not sticky must not be found again by an innocent later call
    const std::string message =
        fmt::format("{} at {}: {} ({}, CUDA error {})", call, place_text(where), cudaGetErrorString(status),
                    cudaGetErrorName(status), static_cast<int>(status));
    if (status == cudaErrorMemoryAllocation) out_of_device_memory(message);
    throw Error(ErrorKind::kRuntime, message);
}

void out_of_device_memory(const std::string& message) {
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) throw Error(ErrorKind::kRuntime, message);
    const auto bytes = static_cast<std::int64_t>(total);
    throw OutOfMemory(
        fmt::format("{}, {} of {} free", message, bytes_text(static_cast<std::int64_t>(free)), bytes_text(bytes)),
        bytes);
}

void set_debug_sync(bool on) {
    debug_sync.store(on, std::memory_order_relaxed);
}

void after_launch(cudaStream_t stream, const char* what, std::source_location where) {
    if (!debug_sync.load(std::memory_order_relaxed)) return;
    cuda_check(cudaStreamSynchronize(stream), what, where);
}

}  // namespace lockstep
