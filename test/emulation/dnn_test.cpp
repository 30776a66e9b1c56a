// The emulated cuDNN: its convolutions against exact ones, the lists of algorithms whose first must not be taken, and
// the misuse that it must find.
#include <cudnn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

#include "test/emulation/emulated_device.hpp"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

constexpr std::size_t kWorkspace = 1 << 16;

std::vector<float> numbers(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) v = normal(engine);
    return x;
}

/// 2 images of 6x5x4 -> 3x4x6 with a kernel of 3x2, padding 1x0, stride 2x1 and 2 groups.
struct Descriptors {
    cudnnHandle_t handle = nullptr;
    cudnnTensorDescriptor_t x = nullptr, y = nullptr;
    cudnnFilterDescriptor_t filters = nullptr;
    cudnnConvolutionDescriptor_t how = nullptr;
    static constexpr int kN = 2, kH = 6, kW = 5, kC = 4, kK = 6, kR = 3, kS = 2, kP = 3, kQ = 4, kGroups = 2;

    explicit Descriptors(cudaStream_t stream, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
        cudnnCreate(&handle);
        cudnnSetStream(handle, stream);
        cudnnCreateTensorDescriptor(&x);
        cudnnCreateTensorDescriptor(&y);
        cudnnCreateFilterDescriptor(&filters);
        cudnnCreateConvolutionDescriptor(&how);
        cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, type, kN, kC, kH, kW);
        cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NHWC, type, kN, kK, kP, kQ);
        cudnnSetFilter4dDescriptor(filters, type, CUDNN_TENSOR_NHWC, kK, kC / kGroups, kR, kS);
        cudnnSetConvolution2dDescriptor(how, 1, 0, 2, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
        cudnnSetConvolutionGroupCount(how, kGroups);
        cudnnSetConvolutionMathType(how, CUDNN_FMA_MATH);
    }
    ~Descriptors() {
        cudnnDestroyConvolutionDescriptor(how);
        cudnnDestroyFilterDescriptor(filters);
        cudnnDestroyTensorDescriptor(y);
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroy(handle);
    }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

    static constexpr std::size_t kXs = kN * kH * kW * kC, kYs = kN * kP * kQ * kK,
                                 kFilters = kK * kR * kS * kC / kGroups;
};
using D = Descriptors;

/// Calls visit(index in x, in filters, in y) for every product of the convolution.
template <class Visit>
void for_each_product(Visit visit) {
    constexpr int kInGroup = D::kC / D::kGroups, kOutGroup = D::kK / D::kGroups;
    for (int n = 0; n < D::kN; ++n) {
        for (int p = 0; p < D::kP; ++p) {
            for (int q = 0; q < D::kQ; ++q) {
                for (int k = 0; k < D::kK; ++k) {
                    for (int r = 0; r < D::kR; ++r) {
                        for (int s = 0; s < D::kS; ++s) {
                            const int h = 2 * p - 1 + r, w = q + s;
                            if (h < 0 || h >= D::kH || w >= D::kW) continue;
                            for (int c = 0; c < kInGroup; ++c) {
                                visit(static_cast<std::size_t>(((n * D::kH + h) * D::kW + w) * D::kC +
                                                               k / kOutGroup * kInGroup + c),
                                      static_cast<std::size_t>(((k * D::kR + r) * D::kS + s) * kInGroup + c),
                                      static_cast<std::size_t>(((n * D::kP + p) * D::kQ + q) * D::kK + k));
                            }
                        }
                    }
                }
            }
        }
    }
}

void require_near(const std::vector<float>& got, const std::vector<double>& exact) {
    for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == Approx(exact[i]).margin(1e-5));
}

const float kOne = 1, kZero = 0;

}  // namespace

TEST_CASE("emulated convolutions are near the exact ones in all three passes") {
    const FreshDevice device;
    const StreamOwner stream;
    const Descriptors d(stream);
    const DeviceArray<char> workspace(kWorkspace);
    const DeviceArray<float> dx(D::kXs), dy(D::kYs), dw(D::kFilters), ex(D::kXs), ey(D::kYs), ew(D::kFilters);
    const auto x = numbers(D::kXs, 1), y = numbers(D::kYs, 2), w = numbers(D::kFilters, 3);
    upload(dx.get(), x, stream);
    upload(dy.get(), y, stream);
    upload(dw.get(), w, stream);
    REQUIRE(cudnnConvolutionForward(d.handle, &kOne, d.x, dx.get(), d.filters, dw.get(), d.how,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero, d.y,
                                    ey.get()) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnConvolutionBackwardData(d.handle, &kOne, d.filters, dw.get(), d.y, dy.get(), d.how,
                                         CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace.get(), kWorkspace, &kZero, d.x,
                                         ex.get()) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnConvolutionBackwardFilter(d.handle, &kOne, d.x, dx.get(), d.y, dy.get(), d.how,
                                           CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace.get(), kWorkspace, &kZero,
                                           d.filters, ew.get()) == CUDNN_STATUS_SUCCESS);
    std::vector<double> exact_x(D::kXs), exact_y(D::kYs), exact_w(D::kFilters);
    for_each_product([&](std::size_t i, std::size_t f, std::size_t o) {
        exact_y[o] += double{x[i]} * w[f];
        exact_x[i] += double{y[o]} * w[f];
        exact_w[f] += double{y[o]} * x[i];
    });
    require_near(download(ey.get(), D::kYs, stream), exact_y);
    require_near(download(ex.get(), D::kXs, stream), exact_x);
    require_near(download(ew.get(), D::kFilters, stream), exact_w);
}

TEST_CASE("the default math of fp32 convolutions is tf32, as the real library permits") {
    const FreshDevice device;
    std::vector<std::vector<float>> results;
    for (const auto math : {CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH}) {
        const StreamOwner stream;
        const Descriptors d(stream);
        cudnnSetConvolutionMathType(d.how, math);
        const DeviceArray<float> x(D::kXs), w(D::kFilters), y(D::kYs);
        upload(x.get(), numbers(D::kXs, 1), stream);
        upload(w.get(), numbers(D::kFilters, 3), stream);
        REQUIRE(cudnnConvolutionForward(d.handle, &kOne, d.x, x.get(), d.filters, w.get(), d.how,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero, d.y,
                                        y.get()) == CUDNN_STATUS_SUCCESS);
        results.push_back(download(y.get(), D::kYs, stream));
    }
    REQUIRE(results[0] != results[1]);
    for (std::size_t i = 0; i < D::kYs; ++i) REQUIRE(results[0][i] == Approx(results[1][i]).margin(2e-2));
}

TEST_CASE("the first algorithms listed are ones that a deterministic fp32 run must not take") {
    const FreshDevice device;
    const StreamOwner stream;
    const Descriptors d(stream);
    int given = 0;
    cudnnConvolutionBwdDataAlgoPerf_t data[8];
    REQUIRE(cudnnGetConvolutionBackwardDataAlgorithm_v7(d.handle, d.filters, d.y, d.how, d.x, 8, &given, data) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(given >= 2);
    REQUIRE(data[0].determinism == CUDNN_NON_DETERMINISTIC);
    cudnnConvolutionBwdFilterAlgoPerf_t weights[8];
    REQUIRE(cudnnGetConvolutionBackwardFilterAlgorithm_v7(d.handle, d.x, d.y, d.how, d.filters, 8, &given, weights) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(weights[0].determinism == CUDNN_NON_DETERMINISTIC);
    cudnnConvolutionFwdAlgoPerf_t forward[8];
    REQUIRE(cudnnGetConvolutionForwardAlgorithm_v7(d.handle, d.x, d.filters, d.how, d.y, 8, &given, forward) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(forward[0].mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
}

namespace {

struct Call {
    cudnnConvolutionBwdFilterAlgo_t algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
    float alpha = 1, beta = 0;
    std::size_t workspace = kWorkspace;
};

struct Misuse {
    const char* name;
    std::function<void(Descriptors&, Call&)> plant;
    const char* message;   // of the sticky error; empty: none
    cudnnStatus_t status;  // where the library itself refuses
};

}  // namespace

TEST_CASE("misuse of cuDNN is found, and the right call beside it is not") {
    const std::vector<Misuse> table = {
        {"nothing", [](D&, Call&) {}, "", CUDNN_STATUS_SUCCESS},
        {"non-deterministic", [](D&, Call& c) { c.algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0; },
         "algorithm 0 is non-deterministic", CUDNN_STATUS_EXECUTION_FAILED},
        {"non-deterministic, too", [](D&, Call& c) { c.algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3; },
         "algorithm 3 is non-deterministic", CUDNN_STATUS_EXECUTION_FAILED},
        {"an algorithm that is not there", [](D&, Call& c) { c.algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT; }, "",
         CUDNN_STATUS_NOT_SUPPORTED},
        {"another alpha", [](D&, Call& c) { c.alpha = 0.5F; }, "alpha 0.5 and beta 0", CUDNN_STATUS_EXECUTION_FAILED},
        {"another beta", [](D&, Call& c) { c.beta = 1; }, "alpha 1 and beta 1", CUDNN_STATUS_EXECUTION_FAILED},
        {"a workspace that is too small", [](D&, Call& c) { c.workspace = 16; }, "",
         CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT},
        {"channels first",
         [](D& d, Call&) { cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 6, 5); },
         "layout 0 of type 0", CUDNN_STATUS_EXECUTION_FAILED},
        {"fp64", [](D& d, Call&) { cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_DOUBLE, 2, 4, 6, 5); },
         "layout 1 of type 1", CUDNN_STATUS_EXECUTION_FAILED},
        {"mixed types",
         [](D& d, Call&) { cudnnSetTensor4dDescriptor(d.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 4, 6, 5); }, "",
         CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE},
        {"a flipped filter",
         [](D& d, Call&) {
             cudnnSetConvolution2dDescriptor(d.how, 1, 0, 2, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT);
         },
         "mode 0", CUDNN_STATUS_EXECUTION_FAILED},
        {"operands rounded by the library",
         [](D& d, Call&) { cudnnSetConvolutionMathType(d.how, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION); }, "type 2",
         CUDNN_STATUS_EXECUTION_FAILED},
        {"another output",
         [](D& d, Call&) { cudnnSetTensor4dDescriptor(d.y, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 6, 3, 5); }, "",
         CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH},
    };
    for (const Misuse& misuse : table) {
        INFO(misuse.name);
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<char> workspace(kWorkspace);
        const DeviceArray<float> x(D::kXs), y(D::kYs), w(D::kFilters);
        upload(x.get(), numbers(D::kXs, 1), stream);
        upload(y.get(), numbers(D::kYs, 2), stream);
        Descriptors d(stream);
        Call call;
        misuse.plant(d, call);
        const cudnnStatus_t status =
            cudnnConvolutionBackwardFilter(d.handle, &call.alpha, d.x, x.get(), d.y, y.get(), d.how, call.algorithm,
                                           workspace.get(), call.workspace, &call.beta, d.filters, w.get());
        REQUIRE(status == misuse.status);
        const cudaError_t after = cudaStreamSynchronize(stream);
        REQUIRE((after != cudaSuccess) == (*misuse.message != '\0'));
        if (after != cudaSuccess) REQUIRE_THAT(cudaGetErrorString(after), Contains(misuse.message));
    }
}

TEST_CASE("a convolution that reads what another stream still writes is found") {
    const FreshDevice device;
    const StreamOwner first, second;
    const Descriptors d(second);
    const DeviceArray<float> x(D::kXs), w(D::kFilters), y(D::kYs);
    upload(w.get(), numbers(D::kFilters, 3), second);
    CUDA_CHECK(cudaMemsetAsync(x.get(), 0, D::kXs * sizeof(float), first));
    REQUIRE(cudnnConvolutionForward(d.handle, &kOne, d.x, x.get(), d.filters, w.get(), d.how,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero, d.y,
                                    y.get()) != CUDNN_STATUS_SUCCESS);
    REQUIRE_THAT(cudaGetErrorString(cudaErrorLaunchFailure),
                 Contains("race: cudnnConvolutionForward") && Contains("reads memory"));
}
