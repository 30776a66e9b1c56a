// The emulated CUDA runtime as the emulated libraries (cuBLAS, cuDNN, NCCL) see it: how their C functions report, how
// they put work on a stream, and how that work reaches device memory. Programs under test see the C interface only.
//
//   cublasStatus_t cublasSgemm_v2(...) {
//       return emulation::call("cublasSgemm", [&] {
//           emulation::access(stream, a, bytes, false, "cublasSgemm");     // every range first, on the calling thread
//           emulation::access(stream, c, bytes, true, "cublasSgemm");
//           emulation::push(stream, "cublasSgemm", [=] {                   // runs later, on the device's executor
//               auto* x = static_cast<const float*>(emulation::translate(a, bytes));
//               ...
//           });
//           return cudaSuccess;
//       }) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
//   }
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::emulation {

/// What fail() throws. It never leaves a C function: call() and the executor turn it into the device's sticky error.
struct Fault {
    cudaError_t code;
    std::string message;
};

/// A bug of the program under test was found. Printed once; from then on every call on the device returns the code, and
/// cudaGetErrorString gives the message with it.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] void fail(cudaError_t code, const std::string& message);

/// For a bad argument that the real library refuses without harm to the device: prints the reason and returns `code`,
/// which becomes the thread's last error. Not sticky.
cudaError_t refuse(cudaError_t code, const std::string& message);

/// The body of every emulated C function: refuses without a driver or after a sticky error, runs `body`, turns a Fault
/// into the sticky error of the calling thread's device. Never throws.
cudaError_t call(const char* name, const std::function<cudaError_t()>& body);

/// States, on the calling thread and before push(), that the work pushed next reads or writes a range. Fails where work
/// of another stream touches it with no event or synchronisation between. Device and pinned host memory alike.
void access(cudaStream_t stream, const void* pointer, std::size_t bytes, bool write, const std::string& what);

/// Puts work on a stream. It runs on the executor thread of the stream's device, in stream order, when the order mode
/// (lazy, eager, random) lets it.
void push(cudaStream_t stream, const std::string& what, std::function<void()> work);

/// The same for work that waits for something outside the device (a peer rank): called again until it returns true. It
/// must never block, other streams of the device run meanwhile.
void push_poll(cudaStream_t stream, const std::string& what, std::function<bool()> work);

/// Memory behind a device address (or pinned host memory: the pointer itself), inside work only. Fails on memory that
/// is freed, too short, of another device, or pageable.
void* translate(const void* pointer, std::size_t bytes);

/// The device of the calling thread (inside work: the device that runs it), and the device of a stream.
int current_device();
int device_of(cudaStream_t stream);

/// What cudaDeviceGetPCIBusId gives for a device.
std::string pci_bus_id(int device);

/// Numbers that depend on LOCKSTEP_EMULATION_SEED and on the calls of this thread alone.
std::uint64_t random();

/// Fills memory with the bytes of a not-a-number of every floating-point type (a workspace after a call, say).
void fill_nan(void* memory, std::size_t bytes);

}  // namespace lockstep::emulation
