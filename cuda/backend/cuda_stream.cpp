// Streams and events: the only way in which work of the device is put in order.
#include "core/error.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep {

// Never the default stream, which waits for all others.
CudaStream::CudaStream(int index, bool urgent) : Stream(index) {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least));
}

CudaStream::~CudaStream() {
    // After a fault of the device every call fails, and the first one was reported.
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

// Blocking: a thread that waits gives its core away.
CudaEvent::CudaEvent() {
    CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync));
}

CudaEvent::~CudaEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
}

void CudaEvent::record(cudaStream_t stream) {
    CUDA_CHECK(cudaEventRecord(event_, stream));
}

void CudaEvent::make_wait(cudaStream_t stream) const {
    CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
}

bool CudaEvent::done() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
    }
    cuda_check(status, "cudaEventQuery(event_)");
    return true;
}

void CudaEvent::wait() const {
    CUDA_CHECK(cudaEventSynchronize(event_));
}

}  // namespace lockstep
