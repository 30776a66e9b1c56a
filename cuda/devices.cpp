#include "cuda/devices.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <array>
#include <string>

#include "core/error.hpp"
#include "cuda/access.h"
#ifndef LOCKSTEP_WITHOUT_NCCL
#include "cuda/comm/nccl_handle.hpp"
#endif

namespace lockstep {
namespace {

// CUDA's way to write 13.0 is 13000.
std::string cuda_version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version / 10 % 100);
}

int driver_version() {
    int version = 0;  // stays 0 without a driver
    return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int runtime_version() {
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

[[noreturn]] void no_devices(cudaError_t status) {
    cudaGetLastError();
    const int driver = driver_version();
    if (status == cudaErrorNoDevice) {
        fail(ErrorKind::kUsage,
             "NVIDIA's driver shows this process no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
             "device.backend = \"cpu\"");
    }
    if (status == cudaErrorInsufficientDriver && driver == 0) {
        fail(ErrorKind::kUsage,
             "NVIDIA's driver does not answer: install one (nvidia-smi must list the GPUs), or use "
             "device.backend = \"cpu\"");
    }
    if (status == cudaErrorInsufficientDriver) {
        fail(ErrorKind::kUsage,
             "NVIDIA's driver supports CUDA up to {}, and Lockstep was built for CUDA {}: update the driver, or use "
             "device.backend = \"cpu\"",
             cuda_version_text(driver), cuda_version_text(runtime_version()));
    }
    fail(ErrorKind::kUsage, "the GPUs cannot be used: {} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

std::string cublas_version() {
    std::array<int, 3> parts{};
    cublasGetProperty(MAJOR_VERSION, &parts[0]);
    cublasGetProperty(MINOR_VERSION, &parts[1]);
    cublasGetProperty(PATCH_LEVEL, &parts[2]);
    return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

std::string cudnn_version() {
    const auto version = cudnnGetVersion();  // 9.19.1 is 91901
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::vector<GpuFacts> list_gpus() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) no_devices(status);
    if (count == 0) no_devices(cudaErrorNoDevice);
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
    versions.cudnn = cudnn_version();
#ifndef LOCKSTEP_WITHOUT_NCCL
    versions.nccl = nccl_version();
#endif
    return versions;
}

}  // namespace lockstep
