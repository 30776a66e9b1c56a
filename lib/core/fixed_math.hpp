// Functions whose last bit may reach a weight: our own polynomials with explicit fma, the same bits on every machine
// (libm's are not). Correct to 2 ulp over the stated ranges; the tests compare with long double.
#pragma once

namespace lockstep {

// fp64: schedules, initial weights, bias corrections.
double exp_fixed(double x);
double log_fixed(double x);                              // x > 0; log(0) = -inf, NaN for x < 0
double cos_fixed(double x);                              // |x| <= 2^20
double sin_fixed(double x);                              // |x| <= 2^20
double pow_fixed(double x, double y);                    // x >= 0
double power_int_fixed(double x, unsigned long long n);  // repeated squaring, in a stated order

// fp32: softmax and losses. The vector kernels compute the same operations lane by lane.
float exp_fixed(float x);  // softmax's range: x <= 88, above +inf; below -87.33654 gives +0
float log_fixed(float x);  // x > 0, normal; zero and subnormals give -inf, NaN for x < 0

}  // namespace lockstep
