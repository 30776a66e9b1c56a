#include "cuda/backend/gradient_checks.hpp"

#include <algorithm>

#include "backend/arithmetic.hpp"
#include "cuda/access.h"
#include "cuda/kernels/norm.h"

namespace lockstep {
namespace {

constexpr int64_t kBlocks = 4096;  // of a round: 16 Mi elements

}  // namespace

GradientChecks::GradientChecks(CudaContext& context)
    : device_(context.allocate(kBlocks * sizeof(double))),
      host_(context.allocate_host(kBlocks * sizeof(double))),
      found_(context.allocate(sizeof(uint32_t))) {}

bool GradientChecks::all_finite(cudaStream_t stream, int64_t n, const float* x) {
    ++mark_;
    auto* const found = reinterpret_cast<uint32_t*>(found_->data());
    auto* const answer = reinterpret_cast<uint32_t*>(host_->data());
    launch_find_nonfinite(n, x, mark_, found, stream);
    CUDA_CHECK(cudaMemcpyAsync(answer, found, sizeof *found, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return *answer != mark_;
}

double GradientChecks::square_sum(cudaStream_t stream, int64_t n, const float* gradient, const float* w, float divisor,
                                  float l2) {
    auto* const sums = reinterpret_cast<double*>(device_->data());
    const auto* const host_sums = reinterpret_cast<const double*>(host_->data());
    constexpr int64_t kRound = kBlocks * kSquareBlock;
    double total = 0;
    for (int64_t first = 0; first < n; first += kRound) {
        const int64_t count = std::min(kRound, n - first), blocks = (count + kSquareBlock - 1) / kSquareBlock;
        launch_block_square_sums(count, gradient + first, w + first, divisor, l2, sums, stream);
        CUDA_CHECK(cudaMemcpyAsync(host_->data(), sums, static_cast<std::size_t>(blocks) * sizeof(double),
                                   cudaMemcpyDeviceToHost, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        for (int64_t block = 0; block < blocks; ++block) total = total + host_sums[block];
    }
    return total;
}

}  // namespace lockstep
