// What the CUDA backend says where a GPU cannot be used or is too small, and that the emulation would see an order
// between streams that is missing.
#include <catch2/catch.hpp>

#include "backend/kernel_fixture.hpp"
#include "backend/out_of_memory.hpp"
#include "core/error.hpp"
#include "cuda/backend/cuda_context.hpp"
#include "test/emulation/emulated_device.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;
using emulation::Driver;
using emulation::FreshDevice;
using emulation::settings;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

NamedBackend cuda(int streams) {
    CudaOptions options;
    options.streams = streams;
    return {"cuda", make_cuda_backend(options), Placement::kAligned};
}

/// The message of a refusal, which must be the user's to mend.
std::string refusal(const CudaOptions& options) {
    try {
        make_cuda_backend(options);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kUsage);
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        return error.what();
    }
    return "accepted";
}

std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
}

FoldProgram uneven_fold() {
    return fold_program(5, {0, 5}, std::vector<int64_t>{3, 0, 4, 1, 2});
}

}  // namespace

TEST_CASE("a machine without a driver, with an old one, or without a GPU is refused in one line each") {
    const FreshDevice device;
    settings().driver = Driver::kMissing;
    CHECK_THAT(refusal({}), Contains("NVIDIA's driver does not answer") && Contains("device.backend = \"cpu\""));
    settings().driver = Driver::kOld;
    CHECK_THAT(refusal({}), Contains("supports CUDA up to") && Contains("update the driver"));
    settings().driver = Driver::kNoDevice;
    CHECK_THAT(refusal({}), Contains("shows this process no GPU") && Contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("a GPU that is not there, or too old, is refused in one line each") {
    const FreshDevice device;
    settings().visible = {0, 1};
    CudaOptions third;
    third.device = 2;
    CHECK_THAT(refusal(third), Contains("GPU 2 was asked for, and 2 are visible"));
    settings().arch = 75;
    CHECK_THAT(refusal({}), Contains("compute capability 7.5") && Contains("8.0 or newer"));
    settings().arch = 80;
    CHECK(refusal({}) == "accepted");
    CudaOptions negative;
    negative.streams = -1;
    CHECK_THAT(refusal(negative), Contains("device.streams = -1"));
}

TEST_CASE("a backend says what it runs on and what its bits depend on") {
    const FreshDevice device;
    CHECK(cuda(1)->name() == "cuda Emulated GPU (sm_90) (compute capability 9.0), 1 stream, defined arithmetic");
    CHECK(cuda(1)->fingerprint() == "arithmetic 1");
    CHECK(cuda(0)->streams() == 4);
    CudaOptions vendor;
    vendor.vendor = true;
    CHECK(make_cuda_backend(vendor)->fingerprint() != "arithmetic 1");
}

TEST_CASE("where memory is short, the message says how much was asked for and how much is free") {
    const FreshDevice device;
    settings().memory = 64 * kMiB;
    const NamedBackend on = cuda(1);
    const auto half = on->allocate(32 * kMiB);
    CHECK_THROWS_WITH(on->allocate(48 * kMiB), Contains("out of memory: 48 MiB asked for, 32 MiB of 64 MiB free"));
    const auto most = on->allocate(32 * kMiB - (64 << 10));
    CHECK_THROWS_WITH(on->allocate(60 << 10), Contains("60 KiB asked for") && Contains("KiB of 64 MiB free"));
}

TEST_CASE("memory that was given back can be had again") {
    const FreshDevice device;
    settings().memory = 64 * kMiB;
    const NamedBackend on = cuda(1);
    {
        const auto half = on->allocate(32 * kMiB);
        CHECK_THROWS_AS(on->allocate(48 * kMiB), OutOfMemory);
    }
    CHECK_NOTHROW(on->allocate(48 * kMiB));
}

TEST_CASE("a fold program is sent when it is first met, and found again by its content") {
    const FreshDevice device;
    const NamedBackend on = cuda(1);
    const FoldProgram first = uneven_fold(), again = uneven_fold();
    const OnDevice x(on, Floats(int64_t{first.rows} * 3, 1.0F));
    OnDevice<float> sum(on, 3);
    float* const roots[] = {sum.data()};
    on->fold_rows(on.main(), first, 3, x.data(), roots);
    const std::size_t before = free_bytes();
    on->fold_rows(on.main(), again, 3, x.data(), roots);
    CHECK(free_bytes() == before);
    CHECK(same_bytes(sum.fetch(), Floats(3, 10.0F)));
}

TEST_CASE("twin: a stream that is not ordered after another is found to read what that one writes") {
    const FreshDevice device;
    const NamedBackend on = cuda(2);
    const OnDevice x(on, Floats(1000, 1.0F));
    OnDevice<float> twice(on, 1000), fourfold(on, 1000);
    const auto read_elsewhere = [&](bool ordered) {
        on->add(on.main(), 1000, x.data(), x.data(), twice.data());
        if (ordered) on->order(on.main(), on->communication());
        on->add(on->communication(), 1000, twice.data(), twice.data(), fourfold.data());
        on->synchronize();
    };
    CHECK_NOTHROW(read_elsewhere(true));
    CHECK_THROWS_AS(read_elsewhere(false), Error);
}
