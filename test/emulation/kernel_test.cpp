// The device language: barriers, warps, shared memory, the order of threads, and what is wrong with a launch.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/planted_kernels.h"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

void synchronize(cudaStream_t stream) {
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

// Values whose sum depends on the order of its additions.
std::vector<float> uneven(std::size_t n) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = 1.0F / static_cast<float>(i % 97 + 1) - 0.1F * static_cast<float>(i % 7);
    return x;
}

// The bits that a kernel gives under each of the seeds 0 to 3.
template <class Kernel>
std::vector<std::vector<float>> under_all_seeds(std::size_t n, std::size_t results, const Kernel& kernel) {
    std::vector<std::vector<float>> outcomes;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const FreshDevice device;
        settings().seed = seed;
        const StreamOwner stream;
        const DeviceArray<float> x(n), y(results);
        upload(x.get(), uneven(n), stream);
        upload(y.get(), std::vector<float>(results, 0.0F), stream);
        kernel(y.get(), x.get(), stream);
        outcomes.push_back(download(y.get(), results, stream));
    }
    return outcomes;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// block_sums as plain loops.
std::vector<float> expected_sums(const std::vector<float>& x) {
    std::vector<float> sums;
    for (std::size_t block = 0; block < x.size(); block += 1024) {
        float lanes[256];
        for (std::size_t t = 0; t < 256; ++t) {
            lanes[t] = 0;
            for (std::size_t i = block + t; i < block + 1024 && i < x.size(); i += 256) lanes[t] += x[i];
        }
        const auto fold = [](float* v, int width) {
            for (int d = width / 2; d > 0; d /= 2) {
                float next[32];
                for (int i = 0; i < width; ++i) next[i] = v[i] + v[i ^ d];
                std::memcpy(v, next, sizeof(float) * static_cast<std::size_t>(width));
            }
        };
        float warps[8];
        for (std::size_t w = 0; w < 8; ++w) {
            fold(lanes + 32 * w, 32);
            warps[w] = lanes[32 * w];
        }
        fold(warps, 8);
        sums.push_back(warps[0]);
    }
    return sums;
}

}  // namespace

TEST_CASE("every thread of a grid runs once and knows its place") {
    const FreshDevice device;
    const StreamOwner stream;
    const dim3 grid(3, 2, 2), block(5, 4, 3);
    const std::size_t n = 12 * 60;
    const DeviceArray<int> numbers(n);
    planted::number_threads(numbers.get(), grid, block, stream);
    const auto result = download(numbers.get(), n, stream);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(result[i] == static_cast<int>(100 * (i / 60) + i % 60));
}

TEST_CASE("sums with barriers and shuffles have the stated order under every seed") {
    constexpr std::size_t n = 10007;
    const auto outcomes =
        under_all_seeds(n, 10, [](float* y, const float* x, cudaStream_t s) { planted::block_sums(y, x, n, true, s); });
    const auto expected = expected_sums(uneven(n));
    for (const auto& outcome : outcomes) REQUIRE(same_bits(outcome, expected));
}

TEST_CASE("a missing barrier changes the result under some seed") {
    constexpr std::size_t n = 10007;
    const auto outcomes = under_all_seeds(
        n, 10, [](float* y, const float* x, cudaStream_t s) { planted::block_sums(y, x, n, false, s); });
    const auto expected = expected_sums(uneven(n));
    const auto wrong = std::count_if(outcomes.begin(), outcomes.end(),
                                     [&](const auto& outcome) { return !same_bits(outcome, expected); });
    REQUIRE(wrong >= 2);
}

TEST_CASE("a sum by atomics differs between seeds") {
    constexpr std::size_t n = 5003;
    const auto outcomes =
        under_all_seeds(n, 1, [](float* y, const float* x, cudaStream_t s) { planted::atomic_sum(y, x, n, s); });
    std::set<float> sums;
    for (const auto& outcome : outcomes) sums.insert(outcome[0]);
    REQUIRE(sums.size() >= 3);
}

TEST_CASE("the same seed gives the same bits, even to a kernel that depends on the order of threads") {
    constexpr std::size_t n = 5003;
    const auto run = [&] {
        return under_all_seeds(n, 1,
                               [n](float* y, const float* x, cudaStream_t s) { planted::atomic_sum(y, x, n, s); });
    };
    const auto first = run(), second = run();
    for (std::size_t seed = 0; seed < 4; ++seed) REQUIRE(same_bits(first[seed], second[seed]));
}

TEST_CASE("a barrier that some threads do not reach is found, with the counts") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(1000);
    SECTION("all threads reach it") {
        planted::barrier_below_return(x.get(), 1000, false, stream);
        REQUIRE(download(x.get(), 1000, stream) == std::vector<float>(1000, 1.0F));
    }
    SECTION("24 have left") {
        REQUIRE_THROWS_WITH((planted::barrier_below_return(x.get(), 1000, true, stream), synchronize(stream)),
                            Contains("is reached by 232 threads of a block, 24 have left"));
    }
}

TEST_CASE("threads of a block at different barriers are found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(1);
    REQUIRE_THROWS_WITH((planted::two_barriers(x.get(), stream), synchronize(stream)),
                        Contains("different __syncthreads()"));
}

TEST_CASE("a warp operation that some of its lanes do not call is found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(1);
    REQUIRE_THROWS_WITH((planted::half_a_warp_shuffles(x.get(), stream), synchronize(stream)),
                        Contains("16 in a warp operation, 0 at __syncthreads(), 16 have left"));
}

TEST_CASE("a device works again after a block was left in the middle of a barrier") {
    const FreshDevice device;
    {
        const StreamOwner stream;
        const DeviceArray<float> x(1000);
        REQUIRE_THROWS((planted::barrier_below_return(x.get(), 1000, true, stream), synchronize(stream)));
    }
    CUDA_CHECK(cudaDeviceReset());
    const StreamOwner stream;
    const DeviceArray<float> x(1000);
    planted::barrier_below_return(x.get(), 1000, false, stream);
    REQUIRE(download(x.get(), 1000, stream) == std::vector<float>(1000, 1.0F));
}

TEST_CASE("warp operations move what they say") {
    using planted::WarpOperation;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const FreshDevice device;
        settings().seed = seed;
        const StreamOwner stream;
        const DeviceArray<int> x(32);
        const auto run = [&](WarpOperation what) {
            planted::warp_operation(x.get(), what, stream);
            return download(x.get(), 32, stream);
        };
        const auto exclusive = run(WarpOperation::kXor), down = run(WarpOperation::kDown), up = run(WarpOperation::kUp),
                   broadcast = run(WarpOperation::kBroadcast), ballot = run(WarpOperation::kBallot);
        for (int t = 0; t < 32; ++t) {
            const auto i = static_cast<std::size_t>(t);
            REQUIRE(exclusive[i] == 10 * (t ^ 5));
            REQUIRE(down[i] == 10 * (t + 3 < 32 ? t + 3 : t));
            REQUIRE(up[i] == 10 * (t >= 3 ? t - 3 : t));
            REQUIRE(broadcast[i] == 70);
            REQUIRE(ballot[i] == 0x49249249);
        }
    }
}

TEST_CASE("dynamic shared memory is what the launch gives, up to the device's limit if the kernel may") {
    const FreshDevice device;
    const StreamOwner stream;
    std::vector<float> x(1024);
    std::iota(x.begin(), x.end(), 0.0F);
    const DeviceArray<float> y(x.size());
    upload(y.get(), x, stream);
    std::reverse(x.begin(), x.end());
    SECTION("exactly enough") {
        planted::reverse(y.get(), x.size(), 4096, false, stream);
        REQUIRE(download(y.get(), x.size(), stream) == x);
    }
    SECTION("more than 48 KiB without asking") {
        REQUIRE_THROWS_WITH(planted::reverse(y.get(), x.size(), (48 << 10) + 4, false, stream),
                            Contains("49156 bytes of dynamic shared memory; this kernel may use 49152"));
    }
    SECTION("more than 48 KiB after asking") {
        planted::reverse(y.get(), x.size(), 227 << 10, true, stream);
        REQUIRE(download(y.get(), x.size(), stream) == x);
    }
    SECTION("more than the device has") {
        REQUIRE_THROWS_WITH(planted::reverse(y.get(), x.size(), (227 << 10) + 1, true, stream),
                            Contains("232449 bytes of shared memory; sm_90 has 232448"));
        settings().arch = 80;
        REQUIRE_THROWS_WITH(planted::reverse(y.get(), x.size(), 164 << 10, true, stream), Contains("sm_80 has 166912"));
    }
}

TEST_CASE("a kernel reverses more than its shared memory holds", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> y(1024);
    planted::reverse(y.get(), 1024, 4000, false, stream);
    synchronize(stream);
}

TEST_CASE("a kernel writes past a shared array", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(32);
    planted::past_shared(x.get(), stream);
    synchronize(stream);
}

TEST_CASE("a kernel loads a misaligned vector", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(64), sum(1);
    planted::sum_of_four(sum.get(), x.get(), 1, stream);
    synchronize(stream);
}

TEST_CASE("a kernel divides by zero", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<int> x(1);
    planted::divide(x.get(), 0, stream);
    synchronize(stream);
}

TEST_CASE("a kernel calls itself too often", "[.]") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<int> x(1);
    planted::recurse(x.get(), 2000, stream);
    synchronize(stream);
}

TEST_CASE(
    "a kernel that leaves its shared memory or its stack, loads a misaligned vector, or divides by zero, is found") {
    for (const auto& [hidden, message] :
         {std::pair{"a kernel reverses more than its shared memory holds", "past its shared memory"},
          std::pair{"a kernel writes past a shared array", "past the end of a shared array of 128 bytes"},
          std::pair{"a kernel loads a misaligned vector", "misaligned"}, std::pair{"a kernel divides by zero", "zero"},
          std::pair{"a kernel calls itself too often", "more stack than a thread has"}}) {
        const Ending ending = run_alone(hidden);
        INFO(ending.output);
        REQUIRE(ending.failed);
        REQUIRE_THAT(ending.output, Contains(message) || Contains("AddressSanitizer"));
    }
}

TEST_CASE("a kernel that divides by a number, or calls itself a few times, is right") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<int> x(1);
    planted::divide(x.get(), 3, stream);
    REQUIRE(download(x.get(), 1, stream)[0] == 2);
    planted::recurse(x.get(), 20, stream);
    REQUIRE(download(x.get(), 1, stream)[0] == 210);
}

TEST_CASE("an aligned vector is loaded whole") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(8), sum(1);
    upload(x.get(), {1, 2, 3, 4, 5, 6, 7, 8}, stream);
    planted::sum_of_four(sum.get(), x.get(), 4, stream);
    REQUIRE(download(sum.get(), 1, stream)[0] == 26.0F);
}

TEST_CASE("structs of numbers are parameters of kernels, and a pointer inside one is found") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(1);
    SECTION("numbers") {
        planted::struct_of_numbers(x.get(), stream);
        REQUIRE(download(x.get(), 1, stream)[0] == 7.5F);
    }
    SECTION("what lies between numbers is none of them") {
        planted::struct_with_padding(x.get(), stream);
        REQUIRE(download(x.get(), 1, stream)[0] == 7.5F);
    }
    SECTION("a pointer") {
        REQUIRE_THROWS_WITH((planted::struct_with_pointer(x.get(), stream), synchronize(stream)),
                            Contains("holds an address"));
    }
}

TEST_CASE("launches that a device cannot take are refused, and harm nothing") {
    const FreshDevice device;
    const StreamOwner stream;
    for (const auto& [grid, block] :
         {std::pair{dim3(1), dim3(1025)}, std::pair{dim3(1), dim3(0)}, std::pair{dim3(0), dim3(32)},
          std::pair{dim3(1, 65536), dim3(32)}, std::pair{dim3(1), dim3(8, 1, 65)}}) {
        REQUIRE_THROWS_WITH(planted::launch_shape(grid, block, 0, stream),
                            Contains("invalid configuration argument") && Contains("planted_kernels.cu"));
    }
    REQUIRE_NOTHROW(planted::launch_shape(dim3(7, 65535), dim3(1), 0, stream));
    synchronize(stream);
}

TEST_CASE("with the debugging switch a launch reports its own kernel's fault") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> x(1000);
    set_debug_sync(true);
    CHECK_THROWS_WITH(planted::barrier_below_return(x.get(), 1000, true, stream),
                      Contains("kernel launched at planted_kernels.cu"));
    set_debug_sync(false);
}
