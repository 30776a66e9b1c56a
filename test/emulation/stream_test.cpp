// Order between host, streams and events: what runs when, and what the happens-before check finds.
#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/planted_kernels.h"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

constexpr std::size_t kN = 1003;

std::vector<float> numbers() {
    std::vector<float> x(kN);
    std::iota(x.begin(), x.end(), 1.0F);
    return x;
}

// y = 2 x on one stream, z = 3 y on another; `ordered` says whether an event stands between.
std::vector<float> two_streams(bool ordered) {
    const DeviceArray<float> x(kN), y(kN), z(kN);
    const StreamOwner first, second;
    const EventOwner ready;
    upload(x.get(), numbers(), first);
    planted::scale(y.get(), x.get(), kN, 2.0F, first);
    if (ordered) {
        CUDA_CHECK(cudaEventRecord(ready, first));
        CUDA_CHECK(cudaStreamWaitEvent(second, ready, 0));
    }
    planted::scale(z.get(), y.get(), kN, 3.0F, second);
    return download(z.get(), kN, second);
}

}  // namespace

TEST_CASE("a result that waits for its copy is the kernel's") {
    const FreshDevice device;
    const DeviceArray<float> x(kN), y(kN);
    const StreamOwner stream;
    upload(x.get(), numbers(), stream);
    planted::scale(y.get(), x.get(), kN, 2.0F, stream);
    const auto result = download(y.get(), kN, stream);
    for (std::size_t i = 0; i < kN; ++i) REQUIRE(result[i] == 2.0F * static_cast<float>(i + 1));
}

TEST_CASE("a result that is read before its copy has finished is not a number") {
    const FreshDevice device;
    settings().order = Order::kLazy;
    const DeviceArray<float> x(kN);
    const PinnedArray<float> host(kN);
    const StreamOwner stream;
    upload(x.get(), numbers(), stream);
    CUDA_CHECK(cudaMemcpyAsync(host.get(), x.get(), kN * sizeof(float), cudaMemcpyDeviceToHost, stream));
    REQUIRE(std::isnan(host[0]));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    REQUIRE(host[0] == 1.0F);
}

TEST_CASE("new device and pinned memory holds no numbers") {
    const FreshDevice device;
    const DeviceArray<float> x(kN);
    const PinnedArray<float> host(kN);
    const StreamOwner stream;
    for (std::size_t i = 0; i < kN; ++i) REQUIRE(std::isnan(host[i]));
    for (const float v : download(x.get(), kN, stream)) REQUIRE(std::isnan(v));
}

TEST_CASE("an event orders the work of two streams") {
    const FreshDevice device;
    const auto z = two_streams(true);
    for (std::size_t i = 0; i < kN; ++i) REQUIRE(z[i] == 6.0F * static_cast<float>(i + 1));
}

TEST_CASE("a stream that reads what another one writes, with no event between, is found") {
    const FreshDevice device;
    REQUIRE_THROWS_WITH(two_streams(false), Contains("race: kernel at planted_kernels.cu") && Contains("reads memory"));
    // The error is sticky, and its text stays.
    REQUIRE(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    REQUIRE(cudaGetLastError() == cudaErrorLaunchFailure);
    REQUIRE_THAT(cudaGetErrorString(cudaErrorLaunchFailure), Contains("race: "));
}

TEST_CASE("a buffer that is used again before its reader has finished is found") {
    for (const bool ordered : {true, false}) {
        const FreshDevice device;
        const DeviceArray<float> x(kN), y(kN);
        const StreamOwner first, second;
        const EventOwner free_again;
        upload(x.get(), numbers(), first);
        planted::scale(y.get(), x.get(), kN, 2.0F, first);
        if (ordered) {
            CUDA_CHECK(cudaEventRecord(free_again, first));
            CUDA_CHECK(cudaStreamWaitEvent(second, free_again, 0));
            REQUIRE_NOTHROW(CUDA_CHECK(cudaMemsetAsync(x.get(), 0, kN * sizeof(float), second)));
            REQUIRE(download(y.get(), kN, second)[1] == 4.0F);
        } else {
            REQUIRE_THROWS_WITH(CUDA_CHECK(cudaMemsetAsync(x.get(), 0, kN * sizeof(float), second)),
                                Contains("race: cudaMemsetAsync") && Contains("writes memory that kernel at"));
        }
    }
}

TEST_CASE("an event that was recorded too early does not order what came after it") {
    const FreshDevice device;
    const DeviceArray<float> x(kN), y(kN);
    const StreamOwner first, second;
    const EventOwner early;
    upload(x.get(), numbers(), first);
    CUDA_CHECK(cudaEventRecord(early, first));
    planted::scale(y.get(), x.get(), kN, 2.0F, first);
    CUDA_CHECK(cudaStreamWaitEvent(second, early, 0));
    REQUIRE_THROWS_WITH(planted::scale(x.get(), y.get(), kN, 3.0F, second), Contains("race: "));
}

TEST_CASE("streams that touch disjoint parts of a buffer, or only read, need no event") {
    const FreshDevice device;
    const DeviceArray<float> x(kN), y(kN);
    const StreamOwner first, second;
    upload(x.get(), numbers(), first);
    planted::scale(y.get(), x.get(), 500, 2.0F, first);
    planted::scale(y.get() + 500, x.get(), kN - 500, 3.0F, second);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto result = download(y.get(), kN, first);
    REQUIRE(result[499] == 1000.0F);
    REQUIRE(result[500] == 3.0F);
}

TEST_CASE("what the host has waited for orders all that follows") {
    const FreshDevice device;
    const DeviceArray<float> x(kN), y(kN);
    const StreamOwner first, second;
    const EventOwner done;
    upload(x.get(), numbers(), first);
    planted::scale(y.get(), x.get(), kN, 2.0F, first);
    SECTION("by a stream") {
        CUDA_CHECK(cudaStreamSynchronize(first));
    }
    SECTION("by an event") {
        CUDA_CHECK(cudaEventRecord(done, first));
        CUDA_CHECK(cudaEventSynchronize(done));
    }
    SECTION("by asking a stream until it has finished") {
        cudaError_t status = cudaErrorNotReady;
        while ((status = cudaStreamQuery(first)) == cudaErrorNotReady) std::this_thread::yield();
        CUDA_CHECK(status);
    }
    SECTION("by asking an event until it has happened") {
        CUDA_CHECK(cudaEventRecord(done, first));
        cudaError_t status = cudaErrorNotReady;
        while ((status = cudaEventQuery(done)) == cudaErrorNotReady) std::this_thread::yield();
        CUDA_CHECK(status);
    }
    REQUIRE_NOTHROW(planted::scale(x.get(), y.get(), kN, 2.0F, second));
    REQUIRE(download(x.get(), kN, second)[0] == 4.0F);
}

TEST_CASE("a stream goes on while its host thread waits for something else") {
    const FreshDevice device;
    const StreamOwner stream;
    std::atomic<bool> reached{false};
    CUDA_CHECK(cudaLaunchHostFunc(
        stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &reached));
    while (!reached.load()) std::this_thread::yield();
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

TEST_CASE("two ranks as threads on devices of their own do not disturb each other") {
    const FreshDevice device;
    std::vector<float> last(2);
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; ++r) {
        ranks.emplace_back([r, &last] {
            CUDA_CHECK(cudaSetDevice(r));
            const DeviceArray<float> x(kN), y(kN);
            const StreamOwner stream;
            upload(x.get(), numbers(), stream);
            for (int i = 0; i < 20; ++i) {
                planted::scale(y.get(), x.get(), kN, 2.0F, stream);
                planted::scale(x.get(), y.get(), kN, 0.5F, stream);
            }
            last[static_cast<std::size_t>(r)] = download(x.get(), kN, stream)[kN - 1];
        });
    }
    for (auto& rank : ranks) rank.join();
    REQUIRE(last == std::vector<float>{static_cast<float>(kN), static_cast<float>(kN)});
}

TEST_CASE("a timed event knows when its work was done") {
    const FreshDevice device;
    const StreamOwner stream;
    const EventOwner start(cudaEventDefault), end(cudaEventDefault), untimed;
    const DeviceArray<float> x(kN);
    CUDA_CHECK(cudaEventRecord(start, stream));
    CUDA_CHECK(cudaMemsetAsync(x.get(), 0, kN * sizeof(float), stream));
    CUDA_CHECK(cudaEventRecord(end, stream));
    CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = -1.0F;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    REQUIRE(milliseconds >= 0.0F);
    REQUIRE(cudaEventElapsedTime(&milliseconds, start, untimed) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("the default stream, and streams and events that are gone, are refused") {
    SECTION("the default stream") {
        const FreshDevice device;
        const DeviceArray<float> x(kN);
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaMemsetAsync(x.get(), 0, kN, nullptr)), Contains("the default stream"));
    }
    SECTION("a blocking stream") {
        const FreshDevice device;
        cudaStream_t stream = nullptr;
        REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamDefault) == cudaErrorNotSupported);
    }
    SECTION("a destroyed stream") {
        const FreshDevice device;
        cudaStream_t stream = nullptr;
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CUDA_CHECK(cudaStreamDestroy(stream));
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaStreamSynchronize(stream)), Contains("was destroyed"));
    }
    SECTION("a destroyed event") {
        const FreshDevice device;
        const StreamOwner stream;
        cudaEvent_t event = nullptr;
        CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        CUDA_CHECK(cudaEventDestroy(event));
        REQUIRE_THROWS_WITH(CUDA_CHECK(cudaEventRecord(event, stream)), Contains("was destroyed"));
    }
    SECTION("a stream of another device") {
        const FreshDevice device;
        const StreamOwner stream;
        CUDA_CHECK(cudaSetDevice(1));
        REQUIRE_THROWS_WITH(planted::launch_shape(1, 1, 0, stream), Contains("a stream of device 0"));
        cudaDeviceReset();
    }
}
