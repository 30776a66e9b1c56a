// exp and log in fp32, for host and GPU: the definition that fixed_math.hpp declares and the vector kernels repeat.
// Each line is one IEEE operation; the sequence stands in fixed_math_constants.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/fixed_math_constants.hpp"
#include "core/host_device.hpp"

// Coefficients are named, not indexed: a kernel cannot reach an array of the host, and the host would fill a local one
// at every call.
namespace lockstep::fixed {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

LOCKSTEP_HOST_DEVICE inline float exp_float(float x) {
    const float t = std::fma(x, kLog2E, kRoundMagic);
    const float n = t - kRoundMagic;
    float r = std::fma(n, -kLn2Hi, x);
    r = std::fma(n, -kLn2Lo, r);
    constexpr float c0 = kExp[0], c1 = kExp[1], c2 = kExp[2], c3 = kExp[3], c4 = kExp[4];
    float p = std::fma(c4, r, c3);
    p = std::fma(p, r, c2);
    p = std::fma(p, r, c1);
    p = std::fma(p, r, c0);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    const float scale = __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, t) << 23) + kOneBits);
    float y = p * scale;
    if (x < kExpLowest) y = 0.0f;
    if (x > kExpHighest) y = kInfinity;
    return y;
}

LOCKSTEP_HOST_DEVICE inline float log_float(float x) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x);
    const int32_t k = static_cast<int32_t>(bits - kSqrtHalfBits) >> 23;
    const float m = __builtin_bit_cast(float, bits - (static_cast<uint32_t>(k) << 23));
    const float e = static_cast<float>(k);
    const float f = m - 1.0f;
    const float z = f * f;
    constexpr float c0 = kLog[0], c1 = kLog[1], c2 = kLog[2], c3 = kLog[3], c4 = kLog[4], c5 = kLog[5], c6 = kLog[6],
                    c7 = kLog[7], c8 = kLog[8];
    float p = std::fma(c8, f, c7);
    p = std::fma(p, f, c6);
    p = std::fma(p, f, c5);
    p = std::fma(p, f, c4);
    p = std::fma(p, f, c3);
    p = std::fma(p, f, c2);
    p = std::fma(p, f, c1);
    p = std::fma(p, f, c0);
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

}  // namespace lockstep::fixed
