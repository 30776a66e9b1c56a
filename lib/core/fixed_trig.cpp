// sin and cos in fp64, for |x| <= 2^20. The argument is reduced by multiples of pi/2 given in 152 bits: the double of
// that range that comes closest to such a multiple misses it by about 2^-58, and the remainder still has all its
// digits.
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/fixed_exp.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

constexpr double kLargest = 0x1p20;
constexpr double kRoundMagic64 = 0x1.8p+52;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// pi/2: three parts of 33 bits, whose products with |n| < 2^20 are exact, and a last one of 53.
constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};

// Taylor: (-1)^k / (2k+1)! for k = 1 ... 8 and (-1)^k / (2k)! for k = 2 ... 9; on |r| <= pi/4 the next terms are below
// 2^-60.
constexpr double kSin[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                           -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
constexpr double kCos[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                           1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};

// x = quarter * pi/2 + hi + lo, |hi| <= pi/4.
struct Reduced {
    double hi;
    double lo;
    int quarter;  // 0 ... 3
};

Reduced reduce(double x) {
    const double n = std::fma(x, kTwoOverPi, kRoundMagic64) - kRoundMagic64;
    double hi = std::fma(n, -kHalfPi[0], x);  // exact
    double lo = 0.0;
    for (const double part : {kHalfPi[1], kHalfPi[2]}) {
        const double term = -(n * part);  // exact; the sum below keeps what it loses
        const double sum = hi + term;
        const double kept = sum - hi;
        lo += (hi - (sum - kept)) + (term - kept);
        hi = sum;
    }
    lo = std::fma(n, -kHalfPi[3], lo);
    const double sum = hi + lo;
    return {sum, lo - (sum - hi), static_cast<int>(static_cast<long long>(n) & 3)};
}

// sin(hi + lo) = sin(hi) + lo cos(hi), where cos(hi) = 1 - hi^2/2 is near enough.
double sin_reduced(double hi, double lo) {
    const double z = hi * hi;
    return hi + std::fma(hi * z, fixed::horner(kSin, z), std::fma(lo, -0.5 * z, lo));
}

// cos(hi + lo) = cos(hi) - lo sin(hi). 1 - z/2 is rounded; what it lost is added back with the small terms.
double cos_reduced(double hi, double lo) {
    const double z = hi * hi;
    const double half = 0.5 * z;
    const double head = 1.0 - half;
    return head + (((1.0 - head) - half) + std::fma(z * z, fixed::horner(kCos, z), -hi * lo));
}

double sin_of_quarter(Reduced r, int quarter) {
    const double value = quarter % 2 == 0 ? sin_reduced(r.hi, r.lo) : cos_reduced(r.hi, r.lo);
    return quarter % 4 >= 2 ? -value : value;
}

bool in_range(double x) {
    return x >= -kLargest && x <= kLargest;
}

}  // namespace

double sin_fixed(double x) {
    if (!in_range(x)) return std::numeric_limits<double>::quiet_NaN();
    const Reduced r = reduce(x);
    return sin_of_quarter(r, r.quarter);
}

double cos_fixed(double x) {
    if (!in_range(x)) return std::numeric_limits<double>::quiet_NaN();
    const Reduced r = reduce(x);
    return sin_of_quarter(r, r.quarter + 1);
}

}  // namespace lockstep
