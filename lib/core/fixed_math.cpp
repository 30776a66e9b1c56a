// exp and log. The fp32 pair stands in fixed_float.hpp, where a GPU's kernels find it too. In fp64 plain Taylor
// coefficients do, which anyone can check; the series are cut where the next term is below 2^-56 of the result.
#include "core/fixed_math.hpp"

#include <cmath>
#include <limits>

#include "core/fixed_exp.hpp"
#include "core/fixed_float.hpp"

namespace lockstep {
namespace {

// log(1+f) with s = f / (2+f), z = s^2: 2 atanh(s) = 2s + s z (kAtanh[0] + kAtanh[1] z + ...), kAtanh[i] = 2 / (2i+3).
// |s| <= 0.1716, so the first term left out is below 2^-60.
constexpr double kAtanh[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                             2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};

}  // namespace

float exp_fixed(float x) {
    return fixed::exp_float(x);
}

float log_fixed(float x) {
    return fixed::log_float(x);
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
