#include "cuda/backend/device_check.hpp"

#include "core/error.hpp"
#include "cuda/access.h"

namespace lockstep {
namespace {

/// "13.0" of 13000.
struct Version {
    int major, minor;
    explicit Version(int number) : major(number / 1000), minor(number % 1000 / 10) {}
};

[[noreturn]] void refuse_driver() {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const Version has(driver), needs(runtime);
    if (driver == 0) {
        fail(ErrorKind::kUsage,
             "device.backend = \"cuda\": no NVIDIA driver on this machine; install one for CUDA {}.{} or newer, or use "
             "device.backend = \"cpu\"",
             needs.major, needs.minor);
    }
    fail(ErrorKind::kUsage,
         "device.backend = \"cuda\": the NVIDIA driver is too old: it serves CUDA up to {}.{}, this program needs "
         "{}.{}; install a newer driver, or use device.backend = \"cpu\"",
         has.major, has.minor, needs.major, needs.minor);
}

int count_devices() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) cudaGetLastError();
    if (status == cudaErrorInsufficientDriver) refuse_driver();
    if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
        fail(
            ErrorKind::kUsage,
            "device.backend = \"cuda\": no GPU is visible to this process; see nvidia-smi and CUDA_VISIBLE_DEVICES, or "
            "use device.backend = \"cpu\"");
    }
    cuda_check(status, "cudaGetDeviceCount(&count)");
    return count;
}

}  // namespace

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
