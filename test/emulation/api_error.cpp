// C functions about errors. The text of an error carries the reason that the emulation knows, so that a program which
// reports its errors reports what it did wrong.
#include <cuda_runtime_api.h>

#include <string>

#include "test/emulation/errors.hpp"
#include "test/emulation/machine.hpp"
#include "test/emulation/runtime.hpp"

namespace {

struct Text {
    cudaError_t code;
    const char* name;
    const char* text;
};

// The codes that the emulation returns, with the real runtime's words.
constexpr Text kTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "the capture was not initiated in this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Text* find(cudaError_t code) {
    for (const Text& t : kTexts) {
        if (t.code == code) return &t;
    }
    return nullptr;
}

}  // namespace

namespace emulation = lockstep::emulation;

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
    const Text* t = find(code);
    return t ? t->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t code) {
    static thread_local std::string text;
    const Text* t = find(code);
    text = t ? t->text : "unrecognized error code";
    if (code == cudaSuccess) return text.c_str();
    if (const std::string reason = emulation::reason_of(code); !reason.empty()) text += ": " + reason;
    return text.c_str();
}

cudaError_t cudaGetLastError() {
    return emulation::take_last_error(false);
}
cudaError_t cudaPeekAtLastError() {
    return emulation::take_last_error(true);
}

cudaError_t cudaDeviceReset() {
    if (const cudaError_t missing = emulation::driver_error(); missing != cudaSuccess) return missing;
    emulation::Machine::get().reset(emulation::current_device());
    emulation::forget_errors();
    return cudaSuccess;
}

}  // extern "C"
