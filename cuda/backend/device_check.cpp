#include "cuda/backend/device_check.hpp"

#include "core/error.hpp"
#include "cuda/access.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse_driver() {
    int driver = 0, runtime = 0;  // the driver's stays 0 where there is none
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) {
        fail(ErrorKind::kUsage,
             "NVIDIA's driver does not answer: install one (nvidia-smi must list the GPUs), or use "
             "device.backend = \"cpu\"");
    }
    fail(ErrorKind::kUsage,
         "NVIDIA's driver supports CUDA up to {}, and Lockstep was built for CUDA {}: update the driver, or use "
         "device.backend = \"cpu\"",
         cuda_version_text(driver), cuda_version_text(runtime));
}

}  // namespace

std::string cuda_version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version / 10 % 100);
}

int count_devices() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) cudaGetLastError();
    if (status == cudaErrorInsufficientDriver) refuse_driver();
    if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
        fail(ErrorKind::kUsage,
             "NVIDIA's driver shows this process no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use "
             "device.backend = \"cpu\"");
    }
    if (status != cudaSuccess) {
        fail(ErrorKind::kUsage, "the GPUs cannot be used: {} ({})", cudaGetErrorString(status),
             cudaGetErrorName(status));
    }
    return count;
}

cudaDeviceProp open_device(int number) {
    const int count = count_devices();
    if (number < 0 || number >= count) {
        fail(ErrorKind::kUsage,
             "GPU {} was asked for, and {} {} visible to this process; start no more ranks on this host than it has "
             "GPUs, or see CUDA_VISIBLE_DEVICES",
             number, count, count == 1 ? "is" : "are");
    }
    cudaDeviceProp properties{};
    CUDA_CHECK(cudaGetDeviceProperties(&properties, number));
    if (properties.major < kOldestMajor) {
        fail(ErrorKind::kUsage,
             "GPU {} ({}) has compute capability {}.{}; the kernels need {}.0 or newer; choose another GPU with "
             "CUDA_VISIBLE_DEVICES, or use device.backend = \"cpu\"",
             number, properties.name, properties.major, properties.minor, kOldestMajor);
    }
    const cudaError_t status = cudaSetDevice(number);
    if (status != cudaSuccess) {
        cudaGetLastError();
        fail(ErrorKind::kUsage,
             "GPU {} ({}) cannot be used: {} ({}); another process may hold it alone: see nvidia-smi", number,
             properties.name, cudaGetErrorString(status), cudaGetErrorName(status));
    }
    return properties;
}

}  // namespace lockstep
