// C functions about graphs: capture of streams, launches of what was captured. Graphs that are built node by node,
// updated or cloned are left out: the product only captures.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "test/emulation/machine.hpp"
#include "test/emulation/runtime.hpp"

using namespace lockstep::emulation;  // every function here is glue between C and that namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return call("cudaStreamBeginCapture", [&] {
        if (mode != cudaStreamCaptureModeThreadLocal) {
            return refuse(cudaErrorNotSupported,
                          "cudaStreamBeginCapture: only cudaStreamCaptureModeThreadLocal is emulated; other threads "
                          "of a rank allocate");
        }
        Machine::get().begin_capture(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return call("cudaStreamIsCapturing", [&] {
        *status = Machine::get().is_captured(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    return call("cudaStreamEndCapture", [&] {
        *graph = nullptr;
        *graph = Machine::get().end_capture(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
    return call("cudaGraphInstantiate", [&] {
        if (flags != 0) return refuse(cudaErrorNotSupported, "cudaGraphInstantiate: flags are not emulated");
        refuse_in_capture("cudaGraphInstantiate");
        *exec = Machine::get().instantiate(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    return call("cudaGraphLaunch", [&] {
        Machine::get().launch(exec, stream);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return call("cudaGraphDestroy", [&] {
        Machine::get().destroy(graph);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return call("cudaGraphExecDestroy", [&] {
        Machine::get().destroy(exec);
        return cudaSuccess;
    });
}

}  // extern "C"
