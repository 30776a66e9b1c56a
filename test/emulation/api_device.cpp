// C functions about devices: how many, what they are, versions, and what a kernel may use on them.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "test/emulation/current_device.hpp"
#include "test/emulation/errors.hpp"
#include "test/emulation/machine.hpp"
#include "test/emulation/runtime.hpp"
#include "test/emulation/settings.hpp"

using namespace lockstep::emulation;  // every function here is glue between C and that namespace

namespace {

constexpr int kKib = 1024;

struct Model {
    int arch, multiprocessors, shared_opt_in, shared_per_multiprocessor, l2;
};

// Figures of the usual product of each architecture (V100, T4, A100, A10, L40, H100, B200).
constexpr Model kModels[] = {{70, 80, 96 * kKib, 96 * kKib, 6 << 20},      {75, 40, 64 * kKib, 64 * kKib, 4 << 20},
                             {80, 108, 163 * kKib, 164 * kKib, 40 << 20},  {86, 72, 99 * kKib, 100 * kKib, 6 << 20},
                             {89, 142, 99 * kKib, 100 * kKib, 96 << 20},   {90, 132, 227 * kKib, 228 * kKib, 50 << 20},
                             {100, 148, 227 * kKib, 228 * kKib, 126 << 20}};

const Model& model() {
    for (const Model& m : kModels) {
        if (m.arch == settings().arch) return m;
    }
    static Model other;
    other = kModels[0];
    other.arch = settings().arch;
    return other;
}

bool exists(int device) {
    return device >= 0 && device < static_cast<int>(settings().visible.size());
}

cudaError_t no_such(const char* name, int device) {
    return refuse(cudaErrorInvalidDevice, fmt::format("{}: device {} of {}", name, device, settings().visible.size()));
}

int attribute(cudaDeviceAttr which, bool& known) {
    const Model& m = model();
    known = true;
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock:
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY:
            return 1024;
        case cudaDevAttrMaxBlockDimZ:
            return 64;
        case cudaDevAttrMaxGridDimX:
            return 0x7FFFFFFF;
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ:
            return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return 48 * kKib;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            return m.shared_opt_in;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            return m.shared_per_multiprocessor;
        case cudaDevAttrWarpSize:
            return 32;
        case cudaDevAttrMultiProcessorCount:
            return m.multiprocessors;
        case cudaDevAttrComputeCapabilityMajor:
            return m.arch / 10;
        case cudaDevAttrComputeCapabilityMinor:
            return m.arch % 10;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return 2048;
        case cudaDevAttrMaxRegistersPerBlock:
            return 65536;
        case cudaDevAttrL2CacheSize:
            return m.l2;
        case cudaDevAttrClockRate:
            return 1'500'000;
        case cudaDevAttrMemoryClockRate:
            return 1'500'000;
        case cudaDevAttrGlobalMemoryBusWidth:
            return 5120;
        case cudaDevAttrAsyncEngineCount:
            return 3;
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrUnifiedAddressing:
            return 1;
        case cudaDevAttrComputeMode:
            return cudaComputeModeDefault;
        case cudaDevAttrIntegrated:
        case cudaDevAttrEccEnabled:
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrManagedMemory:
            return 0;
        case cudaDevAttrPciDomainId:
            return 0;
        case cudaDevAttrPciDeviceId:
            return 0;
        default:
            known = false;
            return 0;
    }
}

}  // namespace

namespace lockstep::emulation {

std::string pci_bus_id(int device) {
    return fmt::format("0000:{:02X}:00.0", 0x10 + settings().visible.at(static_cast<std::size_t>(device)));
}

}  // namespace lockstep::emulation

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    return call("cudaGetDeviceCount", [&] {
        *count = static_cast<int>(settings().visible.size());
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device) {
    // Not through call(): a thread may leave a device whose error is sticky.
    if (const cudaError_t missing = driver_error(); missing != cudaSuccess) return missing;
    if (!exists(device)) return no_such("cudaSetDevice", device);
    set_current_device(device);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    return call("cudaGetDevice", [&] {
        *device = current_device();
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
    return call("cudaDeviceGetAttribute", [&] {
        if (!exists(device)) return no_such("cudaDeviceGetAttribute", device);
        bool known = false;
        const int found = which == cudaDevAttrPciBusId ? 0x10 + settings().visible[static_cast<std::size_t>(device)]
                                                       : attribute(which, known);
        if (!known && which != cudaDevAttrPciBusId) {
            return refuse(cudaErrorNotSupported,
                          fmt::format("cudaDeviceGetAttribute: attribute {} is not emulated", static_cast<int>(which)));
        }
        *value = found;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return call("cudaGetDeviceProperties", [&] {
        if (!exists(device)) return no_such("cudaGetDeviceProperties", device);
        const Model& m = model();
        *properties = {};
        const int place = settings().visible[static_cast<std::size_t>(device)];
        std::snprintf(properties->name, sizeof properties->name, "Emulated GPU (sm_%d)", m.arch);
        const std::uint64_t id[2] = {0x4C6F636B73746570, static_cast<std::uint64_t>(place)};
        std::memcpy(properties->uuid.bytes, id, sizeof id);
        properties->totalGlobalMem = settings().memory;
        properties->sharedMemPerBlock = 48 * kKib;
        properties->sharedMemPerBlockOptin = static_cast<std::size_t>(m.shared_opt_in);
        properties->sharedMemPerMultiprocessor = static_cast<std::size_t>(m.shared_per_multiprocessor);
        properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
        properties->warpSize = 32;
        properties->maxThreadsPerBlock = 1024;
        properties->maxThreadsPerMultiProcessor = 2048;
        const int block[3] = {1024, 1024, 64}, grid[3] = {0x7FFFFFFF, 65535, 65535};
        std::memcpy(properties->maxThreadsDim, block, sizeof block);
        std::memcpy(properties->maxGridSize, grid, sizeof grid);
        properties->major = m.arch / 10;
        properties->minor = m.arch % 10;
        properties->multiProcessorCount = m.multiprocessors;
        properties->l2CacheSize = m.l2;
        properties->memoryBusWidth = 5120;
        properties->asyncEngineCount = 3;
        properties->concurrentKernels = properties->unifiedAddressing = 1;
        properties->pciBusID = 0x10 + place;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
    return call("cudaDeviceGetPCIBusId", [&] {
        if (!exists(device)) return no_such("cudaDeviceGetPCIBusId", device);
        const std::string text = pci_bus_id(device);
        if (static_cast<std::size_t>(length) <= text.size()) {
            return refuse(cudaErrorInvalidValue, fmt::format("cudaDeviceGetPCIBusId: {} bytes are too few", length));
        }
        std::memcpy(id, text.c_str(), text.size() + 1);
        return cudaSuccess;
    });
}

// Both versions are known without a device; without a driver its version is 0.
cudaError_t cudaDriverGetVersion(int* version) {
    *version = settings().driver == Driver::kMissing ? 0 : settings().driver == Driver::kOld ? 12040 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute which, int value) {
    return call("cudaFuncSetAttribute", [&] {
        if (which == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;  // a hint
        if (which != cudaFuncAttributeMaxDynamicSharedMemorySize) {
            return refuse(cudaErrorNotSupported,
                          fmt::format("cudaFuncSetAttribute: attribute {} is not emulated", static_cast<int>(which)));
        }
        if (value < 0 || value > model().shared_opt_in) {
            return refuse(cudaErrorInvalidValue,
                          fmt::format("cudaFuncSetAttribute: {} bytes of shared memory; sm_{} has {}", value,
                                      model().arch, model().shared_opt_in));
        }
        Machine::get().allow_shared(current_device(), function, static_cast<std::size_t>(value));
        return cudaSuccess;
    });
}

}  // extern "C"
