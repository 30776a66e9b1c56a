// What the tests of vendor arithmetic share: a device context for a precision and a number of streams, arrays on the
// device, and distances between results.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep::test {

using Numbers = std::vector<float>;

inline Numbers random_numbers(int64_t n, unsigned seed, float scale = 1.0F) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0.0F, scale);
    Numbers x(static_cast<std::size_t>(n));
    for (float& v : x) v = normal(engine);
    return x;
}

/// The largest difference, in units of the largest value expected.
inline double distance(const Numbers& got, const Numbers& expected) {
    REQUIRE(got.size() == expected.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        REQUIRE(std::isfinite(got[i]));
        worst = std::max(worst, std::abs(double{got[i]} - double{expected[i]}));
        largest = std::max(largest, std::abs(double{expected[i]}));
    }
    return largest > 0 ? worst / largest : worst;
}

inline bool same_bytes(const Numbers& a, const Numbers& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct PrecisionCase {
    CudaPrecision precision;
    double bound;  // of distance() from fp32 sums of fp32 products
};
inline const std::vector<PrecisionCase>& precisions() {
    static const std::vector<PrecisionCase> all = {{CudaPrecision::kFp32, 1e-5},
                                                   {CudaPrecision::kTf32, 2e-3},
                                                   {CudaPrecision::kBf16, 2e-2},
                                                   {CudaPrecision::kFp16, 2e-3}};
    return all;
}

inline CudaOptions vendor_options(CudaPrecision precision, int streams = 1) {
    CudaOptions options;
    options.streams = streams;
    options.vendor = true;
    options.precision = precision;
    return options;
}

/// An array on the device, `shift` floats behind a border of 256 bytes.
class OnGpu {
  public:
    OnGpu(CudaContext& context, const Numbers& from, int shift = 0)
        : context_(context),
          n_(from.size()),
          shift_(shift),
          buffer_(context.allocate((n_ + static_cast<std::size_t>(shift)) * sizeof(float))) {
        if (n_ == 0) return;
        const auto pinned = context.allocate_host(bytes());
        std::memcpy(pinned->data(), from.data(), bytes());
        CUDA_CHECK(cudaMemcpyAsync(data(), pinned->data(), bytes(), cudaMemcpyHostToDevice, stream()));
        CUDA_CHECK(cudaStreamSynchronize(stream()));
    }
    OnGpu(CudaContext& context, int64_t n, int shift = 0)
        : OnGpu(context, Numbers(static_cast<std::size_t>(n), -3.0F), shift) {}

    float* data() const { return reinterpret_cast<float*>(buffer_->data()) + shift_; }
    Numbers fetch() const {
        Numbers to(n_);
        if (n_ == 0) return to;
        CUDA_CHECK(cudaDeviceSynchronize());
        const auto pinned = context_.allocate_host(bytes());
        CUDA_CHECK(cudaMemcpyAsync(pinned->data(), data(), bytes(), cudaMemcpyDeviceToHost, stream()));
        CUDA_CHECK(cudaStreamSynchronize(stream()));
        std::memcpy(to.data(), pinned->data(), bytes());
        return to;
    }

  private:
    std::size_t bytes() const { return n_ * sizeof(float); }
    cudaStream_t stream() const { return context_.main().get(); }

    CudaContext& context_;
    std::size_t n_;
    int shift_;
    std::unique_ptr<Buffer> buffer_;
};

}  // namespace lockstep::test
