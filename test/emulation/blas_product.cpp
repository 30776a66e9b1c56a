#include "test/emulation/blas_product.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>

namespace lockstep::emulation {
namespace {

constexpr int64_t kWide = 16;  // of A and C, in registers
constexpr int64_t kHigh = 4;   // rows of B

int64_t padded(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

// To nearest, ties away from zero: what the conversion instruction of tf32 does.
float tf32_of(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    if ((bits & 0x7f800000U) == 0x7f800000U) return x;
    return std::bit_cast<float>((bits + 0x1000U) & 0xffffe000U);
}

}  // namespace

float load(Number number, const void* from, int64_t i) {
    switch (number) {
        case Number::kFp32:
            return static_cast<const float*>(from)[i];
        case Number::kTf32:
            return tf32_of(static_cast<const float*>(from)[i]);
        case Number::kBf16:
            return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]);
        case Number::kFp16:
            return __half2float(static_cast<const __half*>(from)[i]);
    }
    return 0;
}

void store(Number number, float value, void* to, int64_t i) {
    switch (number) {
        case Number::kFp32:
        case Number::kTf32:
            static_cast<float*>(to)[i] = value;
            return;
        case Number::kBf16:
            static_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16_rn(value);
            return;
        case Number::kFp16:
            static_cast<__half*>(to)[i] = __float2half_rn(value);
            return;
    }
}

Product::Product(int64_t m, int64_t n, int64_t k)
    : m_(m),
      n_(n),
      k_(k),
      m_padded_(padded(m, kWide)),
      n_padded_(padded(n, kHigh)),
      a_(static_cast<std::size_t>(k * m_padded_)),
      b_(static_cast<std::size_t>(n_padded_ * k)),
      c_(static_cast<std::size_t>(n_padded_ * m_padded_)) {}

void Product::run(int64_t length) {
    for (int64_t i = 0; i < m_padded_; i += kWide) {
        for (int64_t j = 0; j < n_padded_; j += kHigh) {
            float total[kHigh][kWide] = {};
            for (int64_t end = k_; end > 0; end -= std::min(end, length)) {
                float sum[kHigh][kWide] = {};
                for (int64_t l = end - 1; l >= std::max<int64_t>(0, end - length); --l) {
                    const float* const row = &a_[static_cast<std::size_t>(l * m_padded_ + i)];
                    const float* const column = &b_[static_cast<std::size_t>(j * k_ + l)];
                    for (int64_t y = 0; y < kHigh; ++y) {
                        for (int64_t x = 0; x < kWide; ++x) sum[y][x] += column[y * k_] * row[x];
                    }
                }
                for (int64_t y = 0; y < kHigh; ++y) {
                    for (int64_t x = 0; x < kWide; ++x) total[y][x] += sum[y][x];
                }
            }
            for (int64_t y = 0; y < kHigh; ++y) {
                std::copy_n(total[y], kWide, &c_[static_cast<std::size_t>((j + y) * m_padded_ + i)]);
            }
        }
    }
}

OrderOf& OrderOf::add(int64_t value) {
    state_ = (state_ ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
    return *this;
}

OrderOf& OrderOf::add_alignment(const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer) | 256U;
    return add(static_cast<int64_t>(address & (~address + 1)));
}

}  // namespace lockstep::emulation
