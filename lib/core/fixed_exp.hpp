// Shared by the fp64 functions: e^(hi + lo), the split of a number into mantissa and exponent, Horner's rule.
#pragma once

#include <cmath>
#include <cstddef>

namespace lockstep::fixed {

inline constexpr double kLog2E64 = 0x1.71547652b82fep+0;
inline constexpr double kLn2Hi64 = 0x1.62e42fefa3p-1;  // 41 bits: its product with an exponent is exact
inline constexpr double kLn2Lo64 = 0x1.3de6af278ece6p-42;

/// e^(hi + lo), |lo| far below |hi|. Overflows to +inf, underflows through the subnormals to +0; NaN stays NaN.
double exp_of_sum(double hi, double lo);

/// x = mantissa * 2^exponent with mantissa in [sqrt(1/2), sqrt(2)); x positive and finite.
struct Split {
    double mantissa;
    double exponent;
};
Split split_exponent(double x);

/// c[0] + c[1] z + c[2] z^2 + ..., from the highest term down, one fma each.
template <std::size_t Size>
double horner(const double (&c)[Size], double z) {
    double p = c[Size - 1];
    for (std::size_t i = Size - 1; i-- > 0;) p = std::fma(p, z, c[i]);
    return p;
}

}  // namespace lockstep::fixed
