// Device and pinned memory: every wrong use is found, and the right one beside it passes.
#include <catch2/catch.hpp>

#include <cstring>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/memory.hpp"
#include "test/emulation/planted_kernels.h"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

// A count whose last group of four is incomplete, and whose block does not end at a page.
constexpr std::size_t kOdd = 1003;

void synchronize(cudaStream_t stream) {
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

// A build with AddressSanitizer stops at the exact line instead of reporting a sticky error.
void require_found(const std::string& hidden_case, const std::string& message) {
    const Ending ending = run_alone(hidden_case);
    INFO(ending.output);
    REQUIRE(ending.failed);
    REQUIRE_THAT(ending.output, Contains(message) || Contains("AddressSanitizer"));
}

}  // namespace

TEST_CASE("memory is aligned to 256 bytes, and none is given for no bytes") {
    const FreshDevice device;
    for (const std::size_t bytes : {1, 255, 256, 4095, 4096, 5000}) {
        const DeviceArray<char> x(bytes);
        const PinnedArray<char> y(bytes);
        REQUIRE(reinterpret_cast<std::uintptr_t>(x.get()) % 256 == 0);
        REQUIRE(reinterpret_cast<std::uintptr_t>(y.get()) % 256 == 0);
    }
    void* none = &none;
    REQUIRE(cudaMalloc(&none, 0) == cudaSuccess);
    REQUIRE(none == nullptr);
    REQUIRE(cudaFree(nullptr) == cudaSuccess);
}

TEST_CASE("memory that a kernel uses after it was freed is found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> y(kOdd);
    void* x = nullptr;
    CUDA_CHECK(cudaMalloc(&x, kOdd * sizeof(float)));
    CUDA_CHECK(cudaFree(x));
    REQUIRE_THROWS_WITH((planted::scale(y.get(), static_cast<float*>(x), kOdd, 2.0F, stream), synchronize(stream)),
                        Contains("used after it was freed") && Contains("kernel at planted_kernels.cu"));
}

TEST_CASE("memory that is freed twice is found") {
    SECTION("on the device") {
        const FreshDevice device;
        void* x = nullptr;
        CUDA_CHECK(cudaMalloc(&x, kOdd));
        CUDA_CHECK(cudaFree(x));
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaFree(x)), Contains("device memory is freed twice"));
    }
    SECTION("on the host") {
        const FreshDevice device;
        void* x = nullptr;
        CUDA_CHECK(cudaMallocHost(&x, kOdd));
        CUDA_CHECK(cudaFreeHost(x));
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaFreeHost(x)), Contains("pinned host memory is freed twice"));
    }
    SECTION("by the wrong function") {
        const FreshDevice device;
        const PinnedArray<float> x(kOdd);
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaFree(x.get())), Contains("never allocated"));
    }
}

TEST_CASE("host code follows a device pointer", "[.]") {
    const FreshDevice device;
    const DeviceArray<float> x(kOdd);
    const volatile float* p = x.get();
    REQUIRE(*p == 0.0F);
}

TEST_CASE("host code that follows a device pointer is stopped and told so") {
    const Ending ending = run_alone("host code follows a device pointer");
    REQUIRE(ending.failed);
    REQUIRE_THAT(ending.output, Contains("host code used a device pointer"));
}

TEST_CASE("a host pointer given to a kernel is found") {
    SECTION("pageable") {
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<float> y(kOdd);
        const std::vector<float> x(kOdd);
        REQUIRE_THROWS_WITH((planted::scale(y.get(), x.data(), kOdd, 2.0F, stream), synchronize(stream)),
                            Contains("not pinned"));
    }
    SECTION("pinned") {
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<float> y(kOdd);
        const PinnedArray<float> x(kOdd);
        REQUIRE_THROWS_WITH((planted::scale(y.get(), x.get(), kOdd, 2.0F, stream), synchronize(stream)),
                            Contains("pinned host memory is given to a kernel"));
    }
}

TEST_CASE("memory of another device given to a kernel is found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> y(kOdd);
    CUDA_CHECK(cudaSetDevice(1));
    const DeviceArray<float> x(kOdd);
    CUDA_CHECK(cudaSetDevice(0));
    REQUIRE_THROWS_WITH((planted::scale(y.get(), x.get(), kOdd, 2.0F, stream), synchronize(stream)),
                        Contains("memory of device 1 is used on device 0"));
}

TEST_CASE("a launch that states more memory than there is is found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd), y(kOdd + 1);
    REQUIRE_THROWS_WITH((planted::scale(y.get(), x.get(), kOdd + 1, 2.0F, stream), synchronize(stream)),
                        Contains("4016 bytes from byte 0 on of a block of 4012 bytes"));
}

TEST_CASE("a copy from or to pageable memory is refused") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd);
    std::vector<float> pageable(kOdd);
    REQUIRE_THROWS_WITH(CUDA_CHECK(cudaMemcpyAsync(x.get(), pageable.data(), kOdd * 4, cudaMemcpyHostToDevice, stream)),
                        Contains("not pinned"));
}

TEST_CASE("a copy in another direction than it says is refused") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd);
    const PinnedArray<float> host(kOdd);
    REQUIRE_THROWS_WITH(CUDA_CHECK(cudaMemcpyAsync(x.get(), host.get(), kOdd * 4, cudaMemcpyDeviceToHost, stream)),
                        Contains("invalid copy direction") && Contains("from pinned host to device"));
}

TEST_CASE("a copy that is too long is refused, at either end") {
    SECTION("target") {
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<float> x(kOdd);
        const PinnedArray<float> host(kOdd + 1);
        REQUIRE_THROWS_WITH(
            CUDA_CHECK(cudaMemcpyAsync(x.get(), host.get(), kOdd * 4 + 4, cudaMemcpyHostToDevice, stream)),
            Contains("of a block of 4012 bytes of device memory"));
    }
    SECTION("source") {
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<float> x(kOdd + 1);
        const PinnedArray<float> host(kOdd);
        REQUIRE_THROWS_WITH(
            CUDA_CHECK(cudaMemcpyAsync(x.get(), host.get(), kOdd * 4 + 4, cudaMemcpyHostToDevice, stream)),
            Contains("of a block of 4012 bytes of pinned host memory"));
    }
}

TEST_CASE("an odd count is scaled by groups of four and a tail") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd);
    upload(x.get(), std::vector<float>(kOdd, 1.0F), stream);
    planted::scale_by_four(x.get(), kOdd, 3.0F, true, stream);
    REQUIRE(download(x.get(), kOdd, stream) == std::vector<float>(kOdd, 3.0F));
}

TEST_CASE("an odd count is rounded up to groups of four", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd);
    planted::scale_by_four(x.get(), kOdd, 3.0F, false, stream);
    synchronize(stream);
}

TEST_CASE("a kernel writes just before its block", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(100);  // not at the start of a page: what lies before it can be written
    planted::touch(x.get(), 100, -1, stream);
    synchronize(stream);
}

TEST_CASE("a kernel writes far past its block", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(kOdd);
    planted::touch(x.get(), kOdd, 1100, stream);
    synchronize(stream);
}

TEST_CASE("a kernel that writes outside its block is found and named") {
    require_found("an odd count is rounded up to groups of four", "written past the end of a block of 4012 bytes");
    require_found("a kernel writes just before its block", "written 1 bytes before the start of a block of 400 bytes");
    require_found("a kernel writes far past its block", "used at byte 4400 of a block of 4012 bytes");
}

TEST_CASE("after a fault every call reports it until the device is reset") {
    const FreshDevice device;
    const StreamOwner stream;
    void* p = nullptr;
    REQUIRE(cudaFree(&p) == cudaErrorInvalidValue);
    REQUIRE(cudaMalloc(&p, 16) == cudaErrorInvalidValue);
    REQUIRE(cudaStreamSynchronize(stream) == cudaErrorInvalidValue);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    REQUIRE(cudaMalloc(&p, 16) == cudaSuccess);
    REQUIRE(cudaFree(p) == cudaSuccess);
}

TEST_CASE("pointers know what they point to") {
    const FreshDevice device;
    const DeviceArray<float> x(4);
    const PinnedArray<float> host(4);
    float local = 0;
    cudaPointerAttributes a{};
    CUDA_CHECK(cudaPointerGetAttributes(&a, x.get() + 1));
    REQUIRE(a.type == cudaMemoryTypeDevice);
    REQUIRE(a.device == 0);
    CUDA_CHECK(cudaPointerGetAttributes(&a, host.get()));
    REQUIRE(a.type == cudaMemoryTypeHost);
    CUDA_CHECK(cudaPointerGetAttributes(&a, &local));
    REQUIRE(a.type == cudaMemoryTypeUnregistered);
}
