// C functions about memory: allocation, asynchronous copies and fills. Synchronous copies, pageable memory and managed
// memory are left out on purpose: the product uses none of them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "test/emulation/fault_trap.hpp"
#include "test/emulation/machine.hpp"
#include "test/emulation/memory.hpp"
#include "test/emulation/runtime.hpp"
#include "test/emulation/settings.hpp"

using namespace lockstep::emulation;  // every function here is glue between C and that namespace

namespace {

enum class Side { kDevice, kPinned, kPageable };

Side side(const void* pointer) {
    if (device_memory().contains(pointer)) return Side::kDevice;
    return pinned_memory().contains(pointer) ? Side::kPinned : Side::kPageable;
}

const char* word(Side side) {
    return side == Side::kDevice ? "device" : side == Side::kPinned ? "pinned host" : "pageable host";
}

// The whole range lies in one live block, now: a copy that is too long is refused where it is asked for.
void check_range(const void* pointer, std::size_t bytes, const char* end) {
    if (side(pointer) == Side::kPageable) {
        fail(cudaErrorInvalidValue,
             fmt::format("the {} of an asynchronous copy is host memory that is not pinned", end));
    }
    MemoryBlock block;
    (side(pointer) == Side::kDevice ? device_memory() : pinned_memory()).resolve(pointer, bytes, block);
}

bool direction_fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return to_device && !from_device;
        case cudaMemcpyDeviceToHost:
            return !to_device && from_device;
        case cudaMemcpyDeviceToDevice:
            return to_device && from_device;
        case cudaMemcpyDefault:
            return true;
        default:
            return false;  // host to host needs no stream
    }
}

cudaError_t allocate(MemorySpace& space, void** pointer, std::size_t bytes, const char* name) {
    return call(name, [&] {
        if (pointer == nullptr) return refuse(cudaErrorInvalidValue, fmt::format("{}: no place for the address", name));
        refuse_in_capture(name);
        install_fault_handlers();
        *pointer = nullptr;
        if (bytes == 0) return cudaSuccess;
        *pointer = space.allocate(bytes, current_device());
        return *pointer != nullptr ? cudaSuccess
                                   : refuse(cudaErrorMemoryAllocation, fmt::format("{}: no memory on the host", name));
    });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
    return call("cudaMalloc", [&] {
        refuse_in_capture("cudaMalloc");
        const std::size_t used = device_memory().used(current_device()), limit = settings().memory;
        if (used > limit || bytes > limit - used) {
            if (pointer != nullptr) *pointer = nullptr;
            return refuse(cudaErrorMemoryAllocation,
                          fmt::format("cudaMalloc: {} bytes; {} of {} are in use", bytes, used, limit));
        }
        return allocate(device_memory(), pointer, bytes, "cudaMalloc");
    });
}

cudaError_t cudaFree(void* pointer) {
    return call("cudaFree", [&] {
        if (pointer == nullptr) return cudaSuccess;
        refuse_in_capture("cudaFree");
        Machine::get().synchronize_device(current_device());
        device_memory().release(pointer);
        return cudaSuccess;
    });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    if ((flags & ~static_cast<unsigned>(cudaHostAllocPortable)) != 0) {
        return call("cudaHostAlloc", [&] {
            return refuse(cudaErrorNotSupported, fmt::format("cudaHostAlloc: flags {} are not emulated", flags));
        });
    }
    return allocate(pinned_memory(), pointer, bytes, "cudaHostAlloc");
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
    return allocate(pinned_memory(), pointer, bytes, "cudaMallocHost");
}

cudaError_t cudaFreeHost(void* pointer) {
    return call("cudaFreeHost", [&] {
        if (pointer == nullptr) return cudaSuccess;
        refuse_in_capture("cudaFreeHost");
        Machine::get().synchronize_device(current_device());
        pinned_memory().release(pointer);
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return call("cudaMemcpyAsync", [&] {
        if (bytes == 0) return cudaSuccess;
        if (!direction_fits(kind, side(to) == Side::kDevice, side(from) == Side::kDevice)) {
            fail(cudaErrorInvalidMemcpyDirection,
                 fmt::format("direction {}, but from {} to {} memory", static_cast<int>(kind), word(side(from)),
                             word(side(to))));
        }
        check_range(from, bytes, "source");
        check_range(to, bytes, "target");
        access(stream, from, bytes, false, "cudaMemcpyAsync");
        access(stream, to, bytes, true, "cudaMemcpyAsync");
        push(stream, "cudaMemcpyAsync", [=] { std::memmove(translate(to, bytes), translate(from, bytes), bytes); });
        return cudaSuccess;
    });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    return call("cudaMemsetAsync", [&] {
        if (bytes == 0) return cudaSuccess;
        if (side(to) != Side::kDevice) fail(cudaErrorInvalidValue, "the target is not device memory");
        check_range(to, bytes, "target");
        access(stream, to, bytes, true, "cudaMemsetAsync");
        push(stream, "cudaMemsetAsync", [=] { std::memset(translate(to, bytes), value, bytes); });
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
    return call("cudaMemGetInfo", [&] {
        const std::size_t used = device_memory().used(current_device()), limit = settings().memory;
        *available = used < limit ? limit - used : 0;
        *total = limit;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    return call("cudaPointerGetAttributes", [&] {
        *attributes = {};
        attributes->device = -1;
        attributes->type = cudaMemoryTypeUnregistered;
        MemoryBlock block;
        if (device_memory().find(pointer, block)) {
            attributes->type = cudaMemoryTypeDevice;
            attributes->device = block.device;
            attributes->devicePointer = const_cast<void*>(pointer);
        } else if (pinned_memory().find(pointer, block)) {
            attributes->type = cudaMemoryTypeHost;
            attributes->device = block.device;
            attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
        } else {
            attributes->hostPointer = const_cast<void*>(pointer);
        }
        return cudaSuccess;
    });
}

}  // extern "C"
