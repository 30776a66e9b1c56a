// exp and log. The fp32 pair is the definition that the vector kernels repeat (sequence of operations:
// fixed_math_constants.hpp). In fp64 plain Taylor coefficients do, which anyone can check; the series are cut where the
// next term is below 2^-56 of the result.
#include "core/fixed_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/fixed_exp.hpp"
#include "core/fixed_math_constants.hpp"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// log(1+f) with s = f / (2+f), z = s^2: 2 atanh(s) = 2s + s z (kAtanh[0] + kAtanh[1] z + ...), kAtanh[i] = 2 / (2i+3).
// |s| <= 0.1716, so the first term left out is below 2^-60.
constexpr double kAtanh[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                             2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};

}  // namespace

float exp_fixed(float x) {
    using namespace fixed;
    const float t = std::fma(x, kLog2E, kRoundMagic);
    const float n = t - kRoundMagic;
    float r = std::fma(n, -kLn2Hi, x);
    r = std::fma(n, -kLn2Lo, r);
    float p = kExp[4];
    for (int i = 3; i >= 0; --i) p = std::fma(p, r, kExp[i]);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    const float scale = std::bit_cast<float>((std::bit_cast<uint32_t>(t) << 23) + kOneBits);
    float y = p * scale;
    if (x < kExpLowest) y = 0.0f;
    if (x > kExpHighest) y = kInfinity;
    return y;
}

float log_fixed(float x) {
    using namespace fixed;
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const int32_t k = static_cast<int32_t>(bits - kSqrtHalfBits) >> 23;
    const float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(k) << 23));
    const float e = static_cast<float>(k);
    const float f = m - 1.0f;
    const float z = f * f;
    float p = kLog[8];
    for (int i = 7; i >= 0; --i) p = std::fma(p, f, kLog[i]);
    p = p * f;
    float y = p * z;
    y = std::fma(e, kLn2Lo, y);
    y = std::fma(z, -0.5f, y);
    y = f + y;
    y = std::fma(e, kLn2Hi, y);
    if (x < kSmallestNormal) y = -kInfinity;
    if (x < 0.0f) y = kNan;
    if (!(x < kInfinity)) y = x;
    return y;
}

double exp_fixed(double x) {
    return fixed::exp_of_sum(x, 0.0);
}

double log_fixed(double x) {
    if (!(x > 0.0))
        return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (!(x < std::numeric_limits<double>::infinity())) return x;
    const fixed::Split split = fixed::split_exponent(x);
    const double f = split.mantissa - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double p = fixed::horner(kAtanh, z);
    // 2s = f - s f = f - (f^2/2 - s f^2/2), so that f itself enters exactly (as in fdlibm's e_log.c).
    const double half_square = 0.5 * f * f;
    const double correction = std::fma(s, std::fma(p, z, half_square), split.exponent * fixed::kLn2Lo64);
    return std::fma(split.exponent, fixed::kLn2Hi64, f - (half_square - correction));
}

double power_int_fixed(double x, unsigned long long n) {
    // Binary digits of n from the lowest: result *= square where the digit is 1, then square *= square.
    double result = 1.0;
    double square = x;
    for (; n != 0; n >>= 1) {
        if (n & 1) result = result * square;
        if (n > 1) square = square * square;
    }
    return result;
}

}  // namespace lockstep
