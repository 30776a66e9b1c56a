#include "cuda/devices.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#ifdef LOCKSTEP_HAVE_CUDNN
#include <cudnn.h>
#endif

#include <array>
#include <string>

#include "core/error.hpp"
#include "cuda/access.h"
#include "cuda/backend/device_check.hpp"
#ifdef LOCKSTEP_HAVE_NCCL
#include "cuda/comm/nccl_handle.hpp"
#endif

namespace lockstep {
namespace {

int driver_version() {
    int version = 0;  // stays 0 without a driver
    return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int runtime_version() {
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

std::string cublas_version() {
    std::array<int, 3> parts{};
    cublasGetProperty(MAJOR_VERSION, &parts[0]);
    cublasGetProperty(MINOR_VERSION, &parts[1]);
    cublasGetProperty(PATCH_LEVEL, &parts[2]);
    return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

#ifdef LOCKSTEP_HAVE_CUDNN
std::string cudnn_version() {
    const auto version = cudnnGetVersion();  // 9.19.1 is 91901
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
#endif

}  // namespace

std::vector<GpuFacts> list_gpus() {
    const int count = count_devices();
    std::vector<GpuFacts> devices;
    for (int device = 0; device < count; ++device) {
        cudaDeviceProp properties{};
        CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
        std::array<char, 32> pci{};
        CUDA_CHECK(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), device));
        GpuFacts facts;
        facts.name = properties.name;
        facts.pci = pci.data();
        facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
        facts.major = properties.major;
        facts.minor = properties.minor;
        facts.usable = properties.major >= kOldestMajor;
        devices.push_back(std::move(facts));
    }
    return devices;
}

CudaVersions cuda_versions() {
    CudaVersions versions;
    const int driver = driver_version();
    if (driver > 0) versions.driver = cuda_version_text(driver);
    versions.runtime = cuda_version_text(runtime_version());
    versions.cublas = cublas_version();
#ifdef LOCKSTEP_HAVE_CUDNN
    versions.cudnn = cudnn_version();
#endif
#ifdef LOCKSTEP_HAVE_NCCL
    versions.nccl = nccl_version();
#endif
    return versions;
}

}  // namespace lockstep
