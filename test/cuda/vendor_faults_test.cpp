// How the faults of NVIDIA's libraries are told: too little memory as such, so that the run says what would fit; and
// with the debugging switch any other fault by the call that caused it.
#include "backend/out_of_memory.hpp"
#include "core/canonical_tree.hpp"
#include "test/cuda/vendor_fixture.hpp"
#include "test/emulation/emulated_device.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;
using emulation::FreshDevice;
using emulation::settings;

namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

ConvShape small_conv() {
    ConvShape shape;
    shape.in = {5, 5, 4};
    shape.out_channels = 4;
    shape.kernel_h = shape.kernel_w = 3;
    return shape;
}

FoldProgram one_shard() {
    return fold_program(1, {0, 1}, std::vector<int64_t>{4});
}

/// What `act` reports as too little memory of the device.
template <class Act>
std::string lack_of_memory(Act act) {
    try {
        act();
    } catch (const OutOfMemory& e) {
        CHECK(e.device_bytes() == static_cast<int64_t>(kGiB));
        CHECK(e.kind() == ErrorKind::kRuntime);
        return e.what();
    }
    return "nothing";
}

/// The message of a forward pass that reads memory given back before.
template <class Forward>
std::string fault_of(bool debug_sync, Forward forward) {
    const FreshDevice device;
    CudaOptions options = vendor_options(CudaPrecision::kFp32);
    options.debug_sync = debug_sync;
    CudaContext context(options);
    try {
        forward(context, [&] { return OnGpu(context, 400).data(); });
        CUDA_CHECK(cudaDeviceSynchronize());
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing";
}

template <class Gone>
void dense_forward(CudaContext& context, Gone gone) {
    const auto dense = make_vendor_dense(context, 8, 8, one_shard(), false);
    const OnGpu w(context, 64), y(context, 32);
    dense->forward(context.main(), gone(), w.data(), nullptr, y.data());
}

template <class Gone>
void conv_forward(CudaContext& context, Gone gone) {
    const auto conv = make_vendor_conv(context, small_conv(), false, true);
    conv->plan_rows(2);
    const OnGpu w(context, small_conv().weights()), y(context, 2 * small_conv().out().elements());
    conv->prepare(context.main(), w.data());
    conv->forward(context.main(), 2, gone(), nullptr, y.data());
}

}  // namespace

TEST_CASE("a library that finds too little memory is told as an out-of-memory of the device") {
    const FreshDevice device;
    settings().memory = kGiB;
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    settings().library_memory = 2 * kGiB;
    CHECK_THAT(
        lack_of_memory([&] { make_vendor_dense(context, 8, 8, one_shard(), false); }),
        Contains("CUBLAS_STATUS_ALLOC_FAILED") && Contains("the GPU is out of memory") && Contains("of 1 GiB free"));
    CHECK_THAT(lack_of_memory([&] { make_vendor_conv(context, small_conv(), false, true)->plan_rows(2); }),
               Contains("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED") && Contains("of 1 GiB free"));
    settings().library_memory = 0;
    CHECK_NOTHROW(make_vendor_dense(context, 8, 8, one_shard(), false));
}

TEST_CASE("a call of the runtime that finds too little memory is told alike") {
    const FreshDevice device;
    settings().memory = kGiB;
    CHECK_THAT(lack_of_memory([] {
                   void* memory = nullptr;
                   CUDA_CHECK(cudaMalloc(&memory, 2 * kGiB));
               }),
               Contains("cudaErrorMemoryAllocation") && Contains("of 1 GiB free"));
}

TEST_CASE("with the debugging switch a fault inside a library is reported behind its call, and else by a later one") {
    const auto dense = [](CudaContext& context, auto gone) { dense_forward(context, gone); };
    const auto conv = [](CudaContext& context, auto gone) { conv_forward(context, gone); };
    CHECK_THAT(fault_of(true, dense), Contains("cublasGemmEx at vendor_dense.cpp"));
    CHECK_THAT(fault_of(false, dense), !Contains("cublasGemmEx at vendor_dense.cpp") && Contains("memory"));
    CHECK_THAT(fault_of(true, conv), Contains("cudnnConvolutionForward at vendor_dnn.cpp"));
    CHECK_THAT(fault_of(false, conv), !Contains("cudnnConvolutionForward at vendor_dnn.cpp") && Contains("memory"));
}
