// What launching, adding and copying cost on this GPU.
#include <fmt/format.h>

#include <memory>

#include "cuda/kernels/elementwise.h"
#include "test/cuda/figures/figures.hpp"

namespace lockstep::figures {

bool machine(int megabytes) {
    CudaOptions options;
    options.streams = 1;
    CudaContext context(options);
    const cudaStream_t stream = context.main().get();
    const std::size_t bytes = static_cast<std::size_t>(megabytes) << 20;
    const auto n = static_cast<int64_t>(bytes / sizeof(float));
    const auto left = context.allocate(bytes), right = context.allocate(bytes), sum = context.allocate(bytes);
    const auto pinned = context.allocate_host(bytes);

    // One number: the kernel is over before the next launch, so that this is what launching takes.
    const double launch =
        seconds_of(stream, megabytes < 16 ? 20 : 5000, [&] { launch_scale(1, 1.0F, left->floats(), stream); });
    const double add =
        seconds_of(stream, 10, [&] { launch_add(n, left->floats(), right->floats(), sum->floats(), stream); });
    const double up = seconds_of(stream, 10, [&] {
        CUDA_CHECK(cudaMemcpyAsync(left->data(), pinned->data(), bytes, cudaMemcpyHostToDevice, stream));
    });
    const double down = seconds_of(stream, 10, [&] {
        CUDA_CHECK(cudaMemcpyAsync(pinned->data(), left->data(), bytes, cudaMemcpyDeviceToHost, stream));
    });
    const auto rate = [&](double seconds, int arrays) { return 1e-9 * arrays * static_cast<double>(bytes) / seconds; };
    fmt::print("a launch {:.2f} us; additions {:.0f} GB/s, to the device {:.1f} GB/s, from it {:.1f} GB/s\n",
               1e6 * launch, rate(add, 3), rate(up, 1), rate(down, 1));
    return true;
}

}  // namespace lockstep::figures
