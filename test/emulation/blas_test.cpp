// The emulated cuBLAS: its products against exact ones, and the misuse that it must find.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

class Handle {
  public:
    Handle(cudaStream_t stream, void* workspace, cublasMath_t math = CUBLAS_DEFAULT_MATH) {
        REQUIRE(cublasCreate(&handle_) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(cublasSetStream(handle_, stream) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(cublasSetWorkspace(handle_, workspace, kWorkspace) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(cublasSetMathMode(handle_, math) == CUBLAS_STATUS_SUCCESS);
    }
    ~Handle() { cublasDestroy(handle_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    operator cublasHandle_t() const { return handle_; }

  private:
    cublasHandle_t handle_ = nullptr;
};

std::vector<float> numbers(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) v = normal(engine);
    return x;
}

template <class T>
std::vector<T> as(const std::vector<float>& x) {
    std::vector<T> y;
    for (const float v : x) y.push_back(static_cast<T>(v));
    return y;
}

struct Case {
    bool ta = false, tb = false;
    int m = 5, n = 7, k = 300;
    int lda() const { return ta ? k : m; }
    int ldb() const { return tb ? n : k; }
};

/// C of column-major operands of type T; `shift` moves A by so many elements.
template <class T>
std::vector<float> product(const Case& c, const std::vector<T>& a, const std::vector<T>& b, cudaDataType type,
                           cublasMath_t math, std::size_t shift = 0) {
    const StreamOwner stream;
    const DeviceArray<char> workspace(kWorkspace);
    const Handle handle(stream, workspace.get(), math);
    const DeviceArray<T> da(a.size() + shift), db(b.size());
    const DeviceArray<float> dc(static_cast<std::size_t>(c.m * c.n));
    upload(da.get() + shift, a, stream);
    upload(db.get(), b, stream);
    const float one = 1, zero = 0;
    REQUIRE(cublasGemmEx(handle, c.ta ? CUBLAS_OP_T : CUBLAS_OP_N, c.tb ? CUBLAS_OP_T : CUBLAS_OP_N, c.m, c.n, c.k,
                         &one, da.get() + shift, type, c.lda(), db.get(), type, c.ldb(), &zero, dc.get(), CUDA_R_32F,
                         c.m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    return download(dc.get(), static_cast<std::size_t>(c.m * c.n), stream);
}

/// Largest error of C beside the exact product, in units of the sum of the products' sizes.
template <class T>
double error(const Case& c, const std::vector<T>& a, const std::vector<T>& b, const std::vector<float>& got) {
    double worst = 0;
    for (int j = 0; j < c.n; ++j) {
        for (int i = 0; i < c.m; ++i) {
            double exact = 0, size = 0;
            for (int l = 0; l < c.k; ++l) {
                const double x = static_cast<float>(a[static_cast<std::size_t>(c.ta ? i * c.k + l : l * c.m + i)]);
                const double y = static_cast<float>(b[static_cast<std::size_t>(c.tb ? l * c.n + j : j * c.k + l)]);
                exact += x * y;
                size += std::abs(x * y);
            }
            worst = std::max(worst, std::abs(got[static_cast<std::size_t>(j * c.m + i)] - exact) / size);
        }
    }
    return worst;
}

constexpr auto kReduced =
    static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

}  // namespace

TEST_CASE("emulated products in every layout are near the exact ones") {
    const FreshDevice device;
    for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
            const Case c{ta, tb, 37, 9, 300};
            const auto a = numbers(37 * 300, 1), b = numbers(9 * 300, 2);
            REQUIRE(error(c, a, b, product(c, a, b, CUDA_R_32F, CUBLAS_DEFAULT_MATH)) < 1e-6);
        }
    }
}

TEST_CASE("tf32, bf16 and fp16 round the operands and nothing else") {
    const FreshDevice device;
    const Case c;
    const auto a = numbers(5 * 300, 1), b = numbers(7 * 300, 2);
    const auto a_bf16 = as<__nv_bfloat16>(a), b_bf16 = as<__nv_bfloat16>(b);
    const auto a_fp16 = as<__half>(a), b_fp16 = as<__half>(b);
    REQUIRE(error(c, a_bf16, b_bf16, product(c, a_bf16, b_bf16, CUDA_R_16BF, kReduced)) < 1e-6);
    REQUIRE(error(c, a_fp16, b_fp16, product(c, a_fp16, b_fp16, CUDA_R_16F, kReduced)) < 1e-6);
    const double tf32 = error(c, a, b, product(c, a, b, CUDA_R_32F, CUBLAS_TF32_TENSOR_OP_MATH));
    REQUIRE(tf32 > 1e-6);
    REQUIRE(tf32 < 1e-3);
}

TEST_CASE("the order of an emulated sum follows the shape and the alignment, and nothing else") {
    const FreshDevice device;
    const Case c;
    const auto a = numbers(5 * 300, 1), b = numbers(7 * 300, 2);
    const auto whole = product(c, a, b, CUDA_R_32F, CUBLAS_DEFAULT_MATH);
    REQUIRE(product(c, a, b, CUDA_R_32F, CUBLAS_DEFAULT_MATH) == whole);
    REQUIRE(product(c, a, b, CUDA_R_32F, CUBLAS_DEFAULT_MATH, 1) != whole);
    Case fewer = c;
    fewer.n = 6;
    const auto part = product(fewer, a, b, CUDA_R_32F, CUBLAS_DEFAULT_MATH);
    REQUIRE(part != std::vector<float>(whole.begin(), whole.begin() + 6 * 5));
}

TEST_CASE("a workspace holds no numbers after a product") {
    const FreshDevice device;
    const StreamOwner stream;
    const DeviceArray<float> workspace(kWorkspace / sizeof(float)), x(4);
    CUDA_CHECK(cudaMemsetAsync(workspace.get(), 0, kWorkspace, stream));
    CUDA_CHECK(cudaMemsetAsync(x.get(), 0, 4 * sizeof(float), stream));
    const Handle handle(stream, workspace.get());
    const float one = 1, zero = 0;
    REQUIRE(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x.get(), CUDA_R_32F, 1, x.get() + 1,
                         CUDA_R_32F, 1, &zero, x.get() + 2, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                         CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(download(x.get() + 2, 1, stream)[0] == 0.0F);
    for (const float v : download(workspace.get(), kWorkspace / sizeof(float), stream)) REQUIRE(std::isnan(v));
}

namespace {

/// A right call, to be made wrong in one place.
struct Call {
    cublasHandle_t handle;
    const void* a;
    cublasOperation_t operation = CUBLAS_OP_N;
    int m = 4, lda = 4;
    float alpha = 1, beta = 0;
    cudaDataType type = CUDA_R_32F;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    cublasGemmAlgo_t algorithm = CUBLAS_GEMM_DEFAULT;
};

struct Misuse {
    const char* name;
    std::function<void(Call&, cudaStream_t)> plant;
    const char* message;  // of the sticky error; null: the library's status alone
};

}  // namespace

TEST_CASE("misuse of cuBLAS is found, and the right call beside it is not") {
    static float host[64] = {};
    const std::vector<Misuse> table = {
        {"nothing", [](Call&, cudaStream_t) {}, ""},
        {"no workspace after the stream", [](Call& c, cudaStream_t s) { cublasSetStream(c.handle, s); },
         "no workspace of the stream's own"},
        {"measured algorithms", [](Call& c, cudaStream_t) { c.algorithm = CUBLAS_GEMM_AUTOTUNE; }, "algorithm 999"},
        {"another alpha", [](Call& c, cudaStream_t) { c.alpha = 2; }, "alpha 2 and beta 0"},
        {"another beta", [](Call& c, cudaStream_t) { c.beta = 1; }, "alpha 1 and beta 1"},
        {"fp64", [](Call& c, cudaStream_t) { c.type = CUDA_R_64F; }, "type 1 of A"},
        {"conjugate", [](Call& c, cudaStream_t) { c.operation = CUBLAS_OP_C; }, "operation 2"},
        {"fast 16-bit", [](Call& c, cudaStream_t) { c.compute = CUBLAS_COMPUTE_32F_FAST_16F; }, "compute type 74"},
        {"sums in 16 bits", [](Call& c, cudaStream_t) { c.type = CUDA_R_16BF; }, "DISALLOW_REDUCED_PRECISION"},
        {"leading dimension", [](Call& c, cudaStream_t) { c.lda = 3; }, nullptr},
        {"negative size", [](Call& c, cudaStream_t) { c.m = -1; }, nullptr},
        {"math by conversion", [](Call& c, cudaStream_t) { cublasSetMathMode(c.handle, CUBLAS_TENSOR_OP_MATH); },
         "mode 1"},
        {"host memory", [](Call& c, cudaStream_t) { c.a = host; }, "cublasGemmEx"},
    };
    for (const Misuse& misuse : table) {
        INFO(misuse.name);
        const FreshDevice device;
        const StreamOwner stream;
        const DeviceArray<char> workspace(kWorkspace);
        const DeviceArray<float> a(64), b(64), c(64);
        upload(a.get(), numbers(64, 1), stream);
        upload(b.get(), numbers(64, 2), stream);
        const Handle handle(stream, workspace.get());
        Call call{handle, a.get()};
        misuse.plant(call, stream);
        const cublasStatus_t status = cublasGemmEx(call.handle, call.operation, CUBLAS_OP_N, call.m, 4, 4, &call.alpha,
                                                   call.a, call.type, call.lda, b.get(), call.type, 4, &call.beta,
                                                   c.get(), CUDA_R_32F, 4, call.compute, call.algorithm);
        const cudaError_t after = cudaStreamSynchronize(stream);
        if (misuse.message == nullptr) {
            REQUIRE(status == CUBLAS_STATUS_INVALID_VALUE);
            REQUIRE(after == cudaSuccess);
        } else if (*misuse.message == '\0') {
            REQUIRE(status == CUBLAS_STATUS_SUCCESS);
            REQUIRE(after == cudaSuccess);
        } else {
            REQUIRE(after != cudaSuccess);
            REQUIRE_THAT(cudaGetErrorString(after), Contains(misuse.message));
        }
    }
}

TEST_CASE("two streams that share a workspace are found") {
    const FreshDevice device;
    const StreamOwner first, second;
    const DeviceArray<char> workspace(kWorkspace);
    const DeviceArray<float> x(8);
    upload(x.get(), numbers(8, 1), first);
    const Handle one(first, workspace.get()), two(second, workspace.get());
    const float alpha = 1, beta = 0;
    const auto multiply = [&](cublasHandle_t handle, float* to) {
        return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, x.get(), CUDA_R_32F, 1, x.get() + 1,
                            CUDA_R_32F, 1, &beta, to, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    };
    REQUIRE(multiply(one, x.get() + 2) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(multiply(two, x.get() + 3) != CUBLAS_STATUS_SUCCESS);
    REQUIRE_THAT(cudaGetErrorString(cudaErrorLaunchFailure), Contains("race: workspace of cublasGemmEx"));
}

TEST_CASE("a handle that was destroyed is found") {
    const FreshDevice device;
    REQUIRE(cublasSetMathMode(nullptr, CUBLAS_DEFAULT_MATH) != CUBLAS_STATUS_SUCCESS);
    REQUIRE_THAT(cudaGetErrorString(cudaErrorLaunchFailure), Contains("no cuBLAS handle"));
}
