// Whether cuBLAS gives one product the same bits on streams at work at once as on one alone.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "cuda/backend/vendor.hpp"
#include "test/cuda/figures/figures.hpp"

namespace lockstep::figures {
namespace {

constexpr int kStreams = 4;

// The emulation refuses what must never be done.
#ifdef LOCKSTEP_CUDA_EMULATION
constexpr bool kMayShare = false;
#else
constexpr bool kMayShare = true;
#endif

/// y[rows][out] = x[rows][in] w[out][in]: a dense layer's forward, weight gradient and data gradient differ in shape
/// alone.
struct Shape {
    int rows, in, out;
};
// Small shards, long sums and large matrices: the shapes for which cuBLAS splits sums, or has reason not to.
constexpr std::array<Shape, 5> kShapes{
    {{16, 784, 512}, {31, 512, 257}, {512, 16, 784}, {8, 9216, 96}, {256, 2048, 1000}}};

class Products {
  public:
    Products(CudaContext& context, const Shape& shape)
        : context_(context), vendor_(Vendor::of(context)), shape_(shape), format_(number_format(precision())) {
        x_ = operand(int64_t{shape.rows} * shape.in, 1);
        w_ = operand(int64_t{shape.out} * shape.in, 2);
        for (int s = 0; s < kStreams; ++s) {
            results_.push_back(context.allocate(result_bytes()));
            pinned_.push_back(context.allocate_host(result_bytes()));
        }
    }

    /// Setting a handle's stream makes it use what cuBLAS allocates itself.
    void take_workspaces_away() {
        for (std::size_t s = 0; s < kStreams; ++s) CUBLAS_CHECK(cublasSetStream(stream(s).blas(), stream(s).get()));
    }

    /// The product on so many streams at once: how many of the rounds' results differ from `expected`, which the first
    /// one fills where it is empty.
    int differing(std::size_t streams, int rounds, std::vector<std::byte>& expected) {
        int wrong = 0;
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t s = 0; s < streams; ++s) {
                multiply(stream(s), results_[s]->data());
                CUDA_CHECK(cudaMemcpyAsync(pinned_[s]->data(), results_[s]->data(), result_bytes(),
                                           cudaMemcpyDeviceToHost, stream(s).get()));
            }
            for (std::size_t s = 0; s < streams; ++s) {
                CUDA_CHECK(cudaStreamSynchronize(stream(s).get()));
                const std::byte* const got = pinned_[s]->data();
                if (expected.empty()) expected.assign(got, got + result_bytes());
                if (std::memcmp(got, expected.data(), result_bytes()) != 0) ++wrong;
            }
        }
        return wrong;
    }

  private:
    VendorStream& stream(std::size_t s) { return vendor_.on(context_.shard(static_cast<int>(s))); }

    CudaPrecision precision() const { return context_.options().precision; }
    std::size_t result_bytes() const { return static_cast<std::size_t>(shape_.rows) * shape_.out * sizeof(float); }

    std::unique_ptr<Buffer> operand(int64_t n, unsigned seed) {
        const auto pinned = context_.allocate_host(static_cast<std::size_t>(n) * sizeof(float));
        std::mt19937 random(seed);
        for (int64_t i = 0; i < n; ++i) pinned->floats()[i] = static_cast<float>(random() % 2001) / 1000 - 1;
        auto floats = context_.allocate(pinned->bytes());
        auto narrowed = context_.allocate(static_cast<std::size_t>(n) * bytes_of(format_));
        const cudaStream_t on = context_.main().get();
        CUDA_CHECK(cudaMemcpyAsync(floats->data(), pinned->data(), pinned->bytes(), cudaMemcpyHostToDevice, on));
        narrow(format_, n, floats->floats(), narrowed->data(), on);
        CUDA_CHECK(cudaStreamSynchronize(on));
        return narrowed;
    }

    void multiply(VendorStream& on, void* result) const {
        const float one = 1, zero = 0;
        const cudaDataType type = format_ == NumberFormat::kFp32   ? CUDA_R_32F
                                  : format_ == NumberFormat::kBf16 ? CUDA_R_16BF
                                                                   : CUDA_R_16F;
        CUBLAS_CHECK(cublasGemmEx(on.blas(), CUBLAS_OP_T, CUBLAS_OP_N, shape_.out, shape_.rows, shape_.in, &one,
                                  w_->data(), type, shape_.in, x_->data(), type, shape_.in, &zero, result, CUDA_R_32F,
                                  shape_.out, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        after_launch(on.get(), "cublasGemmEx");
    }

    CudaContext& context_;
    Vendor& vendor_;
    Shape shape_;
    NumberFormat format_;
    std::unique_ptr<Buffer> x_, w_;
    std::vector<std::unique_ptr<Buffer>> results_, pinned_;
};

}  // namespace

bool products(CudaPrecision precision, int rounds) {
    CudaOptions options;
    options.streams = kStreams;
    options.vendor = true;
    options.precision = precision;
    CudaContext context(options);
    int wrong_own = 0, wrong_shared = 0, others = 0;
    const std::span shapes(kShapes.data(), kMayShare ? kShapes.size() : 2);
    for (const Shape& shape : shapes) {
        Products own(context, shape);
        std::vector<std::byte> expected, shared_expected;
        own.differing(1, 1, expected);
        const int of_own = own.differing(kStreams, rounds, expected);
        int of_shared = 0;
        if (kMayShare) {
            // A context of its own: its handles lose their workspaces.
            CudaContext other(options);
            Products shared(other, shape);
            shared.take_workspaces_away();
            shared.differing(1, 1, shared_expected);
            of_shared = shared.differing(kStreams, rounds, shared_expected);
        }
        if (of_own + of_shared > 0) {
            fmt::print("{} rows, {} to {}: {} differ with an own workspace, {} with cuBLAS's\n", shape.rows, shape.in,
                       shape.out, of_own, of_shared);
        }
        wrong_own += of_own;
        wrong_shared += of_shared;
        others += kMayShare && expected != shared_expected ? 1 : 0;
    }
    const int count = static_cast<int>(shapes.size()) * kStreams * rounds;
    fmt::print("{}: of {} products on {} streams at once {} differ with own workspaces", vendor_fingerprint(context),
               count, kStreams, wrong_own);
    if (kMayShare) {
        fmt::print(", {} with cuBLAS's; the workspace changes the bits of {} of {} shapes", wrong_shared, others,
                   shapes.size());
    }
    fmt::print("\n");
    return wrong_own == 0;
}

}  // namespace lockstep::figures
