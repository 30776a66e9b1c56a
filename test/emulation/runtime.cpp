// How emulated C functions report, and the calling thread's state: its device and its last error.
#include "test/emulation/runtime.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "test/emulation/current_device.hpp"
#include "test/emulation/errors.hpp"
#include "test/emulation/machine.hpp"
#include "test/emulation/settings.hpp"

namespace lockstep::emulation {
namespace {

constinit thread_local int thread_device = 0;
constinit thread_local cudaError_t last_error = cudaSuccess;
thread_local Fault reason{cudaSuccess, ""};  // of the last error; kept when the error itself is taken

cudaError_t note(cudaError_t code, const std::string& message) {
    last_error = code;
    reason = {code, message};
    return code;
}

}  // namespace

void fail(const std::string& message) {
    fail(cudaErrorLaunchFailure, message);
}
void fail(cudaError_t code, const std::string& message) {
    throw Fault{code, message};
}

cudaError_t refuse(cudaError_t code, const std::string& message) {
    std::fprintf(stderr, "emulated CUDA: refused: %s\n", message.c_str());
    return note(code, message);
}

cudaError_t call(const char* name, const std::function<cudaError_t()>& body) {
    if (const cudaError_t missing = driver_error(); missing != cudaSuccess) return note(missing, "");
    const int device = thread_device;
    try {
        if (const auto fault = Machine::get().sticky(device)) return note(fault->code, fault->message);
        const cudaError_t code = body();
        if (code != cudaSuccess && code != cudaErrorNotReady && code != last_error) note(code, "");
        return code;
    } catch (const KnownFault& fault) {
        return note(fault.code, fault.message);
    } catch (const Fault& fault) {
        const bool named = fault.message.find(name) != std::string::npos;
        const Fault found{fault.code, named ? fault.message : fmt::format("{}: {}", name, fault.message)};
        Machine::get().make_sticky(device, found);
        return note(found.code, found.message);
    } catch (const std::exception& error) {
        return refuse(cudaErrorUnknown, fmt::format("{}: {}", name, error.what()));
    }
}

cudaError_t driver_error() {
    switch (settings().driver) {
        case Driver::kMissing:
        case Driver::kOld:
            return cudaErrorInsufficientDriver;
        case Driver::kNoDevice:
            return cudaErrorNoDevice;
        case Driver::kPresent:
            break;
    }
    return settings().visible.empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t take_last_error(bool keep) {
    if (const auto fault = Machine::get().sticky(thread_device)) return fault->code;
    const cudaError_t code = last_error;
    if (!keep) last_error = cudaSuccess;
    return code;
}

void forget_errors() {
    last_error = cudaSuccess;
    reason = {cudaSuccess, ""};
}

std::string reason_of(cudaError_t code) {
    if (reason.code == code) return reason.message;
    const auto fault = Machine::get().sticky(thread_device);
    return fault && fault->code == code ? fault->message : "";
}

int current_device() {
    return thread_device;
}
void set_current_device(int device) {
    thread_device = device;
}
int device_of(cudaStream_t stream) {
    return Machine::get().device_of(stream);
}

void access(cudaStream_t stream, const void* pointer, std::size_t bytes, bool write, const std::string& what) {
    Machine::get().access(stream, pointer, bytes, write, what);
}

void push(cudaStream_t stream, const std::string& what, std::function<void()> work) {
    Machine::get().push(stream, what, [work = std::move(work)] {
        work();
        return true;
    });
}

void push_poll(cudaStream_t stream, const std::string& what, std::function<bool()> work) {
    if (Machine::get().is_captured(stream)) fail(cudaErrorNotSupported, what + ": not emulated in a capture");
    Machine::get().push(stream, what, std::move(work));
}

std::uint64_t random() {
    static constinit thread_local std::uint64_t calls = 0;
    return seeded(calls++);
}

}  // namespace lockstep::emulation
