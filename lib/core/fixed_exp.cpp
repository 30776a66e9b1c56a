#include "core/fixed_exp.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::fixed {
namespace {

constexpr double kRoundMagic64 = 0x1.8p+52;  // adding it to |a| < 2^51 rounds a to an integer
constexpr double kOverflow = 710.0;          // e^710 > the largest double
constexpr double kUnderflow = -746.0;        // e^-746 < half the smallest subnormal

// 1/k! for k = 2 ... 13; |r| <= 0.3466, so r^14 / 14! is below 2^-57.
constexpr double kInverseFactorial[] = {
    1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
    1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
};

double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

}  // namespace

double exp_of_sum(double hi, double lo) {
    if (!(hi == hi)) return hi;
    if (hi > kOverflow) return std::numeric_limits<double>::infinity();
    if (hi < kUnderflow) return 0.0;
    const double n = std::fma(hi, kLog2E64, kRoundMagic64) - kRoundMagic64;
    const double head = std::fma(n, -kLn2Hi64, hi);  // exact
    const double tail = std::fma(n, -kLn2Lo64, lo);
    const double r = head + tail;
    const double rest = tail - (r - head);  // what r lost
    const double p = horner(kInverseFactorial, r);
    const double y = 1.0 + (r + std::fma(r * r, p, std::fma(rest, r, rest)));
    // In two factors, since 2^n alone may lie outside the range; the first product is exact, so y is rounded once more
    // at most.
    const int exponent = static_cast<int>(n);
    const int half = exponent / 2;
    return y * power_of_two(half) * power_of_two(exponent - half);
}

Split split_exponent(double x) {
    constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
    double exponent = 0.0;
    if (x < std::numeric_limits<double>::min()) {
        x *= 0x1p54;  // exact: a subnormal becomes normal
        exponent = -54.0;
    }
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    const int64_t k = static_cast<int64_t>(bits - kSqrtHalfBits) >> 52;
    return {std::bit_cast<double>(bits - (static_cast<uint64_t>(k) << 52)), exponent + static_cast<double>(k)};
}

}  // namespace lockstep::fixed
