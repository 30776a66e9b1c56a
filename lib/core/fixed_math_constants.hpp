// Constants of the fp32 functions exp and log, which exist twice: as one scalar definition (fixed_float.hpp, of host
// and GPU) and lane by lane in the vector kernels. Both follow the sequences below to the letter; each line is one IEEE
// operation, rounded to nearest, so that any instruction set gives the same bits.
//
// exp(x):
//     t = fma(x, kLog2E, kRoundMagic)            // the low bits of t hold n = round(x / ln 2), ties to even
//     n = t - kRoundMagic
//     r = fma(n, -kLn2Hi, x)                     // exact
//     r = fma(n, -kLn2Lo, r)
//     p = kExp[4]
//     p = fma(p, r, kExp[3]);  p = fma(p, r, kExp[2]);  p = fma(p, r, kExp[1]);  p = fma(p, r, kExp[0])
//     p = fma(p, r, 1);        p = fma(p, r, 1)
//     s = float with the bits (bits(t) << 23) + kOneBits          // 2^n; unsigned, wraps
//     y = p * s
//     if x < kExpLowest: y = +0
//     if x > kExpHighest: y = +inf               // a NaN fails both comparisons and passes through r and p
//
// log(x):
//     k = (bits(x) - kSqrtHalfBits) >> 23        // 32 bits, arithmetic shift
//     m = float with the bits bits(x) - (k << 23)                 // in [sqrt(1/2), sqrt(2))
//     e = float(k)
//     f = m - 1                                  // exact
//     z = f * f
//     p = kLog[8]
//     p = fma(p, f, kLog[7]);  ...;  p = fma(p, f, kLog[0])       // eight fmas
//     p = p * f
//     y = p * z
//     y = fma(e, kLn2Lo, y)
//     y = fma(z, -0.5, y)
//     y = f + y
//     y = fma(e, kLn2Hi, y)
//     if x < kSmallestNormal: y = -inf           // zero and subnormals
//     if x < 0: y = NaN
//     if not (x < +inf): y = x                   // +inf and NaN pass through
#pragma once

#include <cstdint>
#include <limits>

namespace lockstep::fixed {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2Hi = 0x1.62e4p-1f;  // 16 bits: its product with an exponent is exact
inline constexpr float kLn2Lo = 0x1.7f7d1cp-20f;
inline constexpr float kRoundMagic = 0x1.8p+23f;  // adding it to |a| < 2^22 rounds a to an integer

// exp(r) = 1 + r + r^2 (kExp[0] + kExp[1] r + ... + kExp[4] r^4) on |r| <= ln(2)/2, minimax: relative error 3.1e-9.
inline constexpr float kExp[5] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e4p-7f, 0x1.6a2424p-10f};
inline constexpr uint32_t kOneBits = 0x3f800000;
inline constexpr float kExpLowest = -87.33654f;  // ln(2^-126): below it the result would be subnormal
inline constexpr float kExpHighest = 88.0f;

// log(1+f) = f - f^2/2 + f^3 (kLog[0] + kLog[1] f + ... + kLog[8] f^8) on [sqrt(1/2) - 1, sqrt(2) - 1], minimax:
// relative error 7.5e-10.
inline constexpr float kLog[9] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b6p-3f,  -0x1.555c4cp-3f, 0x1.233760p-3f,
                                  -0x1.fc2220p-4f, 0x1.e6f0f0p-4f,  -0x1.de3bb4p-4f, 0x1.145614p-4f};
inline constexpr uint32_t kSqrtHalfBits = 0x3f3504f3;
inline constexpr float kSmallestNormal = std::numeric_limits<float>::min();

}  // namespace lockstep::fixed
