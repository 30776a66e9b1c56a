// C functions about streams, events and waiting.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "test/emulation/machine.hpp"
#include "test/emulation/runtime.hpp"

using namespace lockstep::emulation;  // every function here is glue between C and that namespace

namespace {

Machine& machine() {
    return Machine::get();
}

cudaError_t create_stream(const char* name, cudaStream_t* stream, unsigned flags, int priority) {
    return call(name, [&] {
        if (stream == nullptr) return refuse(cudaErrorInvalidValue, fmt::format("{}: no place for the stream", name));
        if (flags != cudaStreamNonBlocking) {
            return refuse(cudaErrorNotSupported,
                          fmt::format("{}: a stream that orders itself against the default stream; give "
                                      "cudaStreamNonBlocking",
                                      name));
        }
        if (priority > 0 || priority < -5) {
            return refuse(cudaErrorInvalidValue, fmt::format("{}: priority {} is not in [-5, 0]", name, priority));
        }
        *stream = machine().create_stream(current_device());
        return cudaSuccess;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return create_stream("cudaStreamCreate", stream, 0, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return create_stream("cudaStreamCreateWithFlags", stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    return create_stream("cudaStreamCreateWithPriority", stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return call("cudaDeviceGetStreamPriorityRange", [&] {
        *least = 0;
        *greatest = -5;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return call("cudaStreamDestroy", [&] {
        machine().destroy_stream(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return call("cudaStreamSynchronize", [&] {
        refuse_in_capture("cudaStreamSynchronize");
        machine().synchronize(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return call("cudaStreamQuery", [&] {
        refuse_in_capture("cudaStreamQuery");
        return machine().query(stream) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return call("cudaStreamWaitEvent", [&] {
        if (flags != 0) return refuse(cudaErrorNotSupported, "cudaStreamWaitEvent: flags are not emulated");
        machine().wait(stream, event);
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
    return call("cudaLaunchHostFunc", [&] {
        push(stream, "cudaLaunchHostFunc", [=] { function(argument); });
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return call("cudaEventCreateWithFlags", [&] {
        if ((flags & ~static_cast<unsigned>(cudaEventBlockingSync | cudaEventDisableTiming)) != 0) {
            return refuse(cudaErrorNotSupported,
                          fmt::format("cudaEventCreateWithFlags: flags {} are not emulated", flags));
        }
        *event = machine().create_event(current_device(), (flags & cudaEventDisableTiming) == 0);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return call("cudaEventDestroy", [&] {
        machine().destroy_event(event);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return call("cudaEventRecord", [&] {
        machine().record(event, stream);
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    return call("cudaEventQuery", [&] {
        refuse_in_capture("cudaEventQuery");
        return machine().query(event) ? cudaSuccess : cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return call("cudaEventSynchronize", [&] {
        refuse_in_capture("cudaEventSynchronize");
        machine().synchronize(event);
        return cudaSuccess;
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return call("cudaEventElapsedTime", [&] {
        const auto elapsed = machine().elapsed(start, end);
        if (!elapsed) {
            return refuse(cudaErrorInvalidResourceHandle,
                          "cudaEventElapsedTime: an event was not recorded, has not completed or keeps no time");
        }
        *milliseconds = *elapsed;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize() {
    return call("cudaDeviceSynchronize", [&] {
        refuse_in_capture("cudaDeviceSynchronize");
        machine().synchronize_device(current_device());
        return cudaSuccess;
    });
}

}  // extern "C"
