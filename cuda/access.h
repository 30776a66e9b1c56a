// What host code says to the CUDA runtime at every launch and call: which memory a kernel reads and writes (in, out,
// inout), and where a call stands when it fails (CUDA_CHECK). No device code and nothing of <cuda_runtime.h> beyond the
// C interface, so that any .cpp may include it; kernels include "cuda/device.h".
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <source_location>
#include <string>

namespace lockstep {

/// How a kernel treats a range of memory.
enum class AccessMode { kRead, kWrite, kReadWrite };

/// `count` elements from `pointer` on, as an argument of launch(). The kernel receives the bare pointer; the host
/// emulation receives the whole range, looks it up, and compares it with what other streams do to the same memory.
template <class T, AccessMode kMode>
struct Access {
    T* pointer;
    std::size_t count;
};

/// The kernel reads these elements and writes none of them.
template <class T>
Access<const T, AccessMode::kRead> in(const T* pointer, std::size_t count) {
    return {pointer, count};
}

/// The kernel writes these elements and reads none that it has not written itself.
template <class T>
Access<T, AccessMode::kWrite> out(T* pointer, std::size_t count) {
    return {pointer, count};
}

/// The kernel reads and writes these elements.
template <class T>
Access<T, AccessMode::kReadWrite> inout(T* pointer, std::size_t count) {
    return {pointer, count};
}

/// Throws Error(kRuntime) with the call, the error's name and text, and the place, unless `status` is cudaSuccess;
/// where the device has too little memory, OutOfMemory (backend/out_of_memory.hpp).
void cuda_check(cudaError_t status, const char* call, std::source_location where = std::source_location::current());

/// CUDA_CHECK(cudaEventRecord(event, stream)): the call stands in the message word for word.
#define CUDA_CHECK(call) ::lockstep::cuda_check((call), #call)

/// "a.cu:12", as messages say where a call stands.
std::string place_text(const std::source_location& where);

/// Throws OutOfMemory: `message`, and how much of the current device is free.
[[noreturn]] void out_of_device_memory(const std::string& message);

/// On: every launch waits for its kernel, and every library call for its work, so that a fault is reported by the
/// launch that caused it and not by a later call. Costs all overlap; meant for LOCKSTEP_DEBUG_SYNC, which the backend
/// reads from its options and sets here once.
void set_debug_sync(bool on);

/// launch() calls this after each kernel, and whoever gives work to NVIDIA's libraries after each call; `what` and the
/// place stand in the message.
void after_launch(cudaStream_t stream, const char* what, std::source_location where = std::source_location::current());

}  // namespace lockstep
