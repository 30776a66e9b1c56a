// pow as e^(y ln x). The exponent reaches 745, so an error of ln x is magnified 745 times in ulps of the result: ln x
// is computed to about 100 bits in double-double arithmetic (Dekker 1971), which is slow and does not matter: pow is
// called a few times per update, never per element.
#include <cmath>
#include <limits>

#include "core/fixed_exp.hpp"
#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

// hi + lo, unevaluated; |lo| <= half an ulp of hi.
struct Double2 {
    double hi;
    double lo;
};

// Requires |a| >= |b|.
Double2 fast_sum(double a, double b) {
    const double sum = a + b;
    return {sum, b - (sum - a)};
}

Double2 sum(double a, double b) {
    const double total = a + b;
    const double part = total - a;
    return {total, (a - (total - part)) + (b - part)};
}

Double2 product(double a, double b) {
    const double p = a * b;
    return {p, std::fma(a, b, -p)};
}

Double2 add(Double2 a, Double2 b) {
    const Double2 high = sum(a.hi, b.hi);
    const Double2 low = sum(a.lo, b.lo);
    const Double2 partial = fast_sum(high.hi, high.lo + low.hi);
    return fast_sum(partial.hi, partial.lo + low.lo);
}

Double2 multiply(Double2 a, Double2 b) {
    const Double2 p = product(a.hi, b.hi);
    return fast_sum(p.hi, p.lo + std::fma(a.hi, b.lo, a.lo * b.hi));
}

Double2 divide(Double2 a, Double2 b) {
    const double q = a.hi / b.hi;
    const Double2 back = product(q, b.hi);
    const double rest = ((a.hi - back.hi) - back.lo + a.lo) - q * b.lo;
    return fast_sum(q, rest / b.hi);
}

// ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...), s = (m-1) / (m+1), |s| <= 0.1716: 20 terms leave less than 2^-100.
constexpr int kTerms = 20;

Double2 log_double2(double x) {
    const fixed::Split split = fixed::split_exponent(x);
    const Double2 s = divide({split.mantissa - 1.0, 0.0}, sum(split.mantissa, 1.0));
    const Double2 z = multiply(s, s);
    Double2 series{0.0, 0.0};
    for (int i = kTerms; i >= 0; --i) series = add(multiply(series, z), divide({1.0, 0.0}, {2.0 * i + 1.0, 0.0}));
    series = multiply(series, s);
    const Double2 of_mantissa{2.0 * series.hi, 2.0 * series.lo};
    const Double2 of_exponent = add({split.exponent * fixed::kLn2Hi64, 0.0}, product(split.exponent, fixed::kLn2Lo64));
    return add(of_exponent, of_mantissa);
}

}  // namespace

double pow_fixed(double x, double y) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (y == 0.0 || x == 1.0) return 1.0;
    if (!(x >= 0.0) || !(y == y)) return std::numeric_limits<double>::quiet_NaN();
    if (x == 0.0) return y > 0.0 ? 0.0 : kInfinity;
    if (x == kInfinity) return y > 0.0 ? kInfinity : 0.0;
    if (y == kInfinity || y == -kInfinity) return (x > 1.0) == (y > 0.0) ? kInfinity : 0.0;
    const Double2 logarithm = log_double2(x);
    const double rough = logarithm.hi * y;
    // Outside exp's range the tail would be inf - inf.
    if (!(rough < 800.0 && rough > -800.0)) return rough > 0.0 ? kInfinity : 0.0;
    const Double2 exponent = fast_sum(rough, std::fma(logarithm.hi, y, -rough) + logarithm.lo * y);
    return fixed::exp_of_sum(exponent.hi, exponent.lo);
}

}  // namespace lockstep
