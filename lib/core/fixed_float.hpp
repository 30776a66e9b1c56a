// exp and log in fp32, for host and GPU: the definition that fixed_math.hpp declares and the vector kernels repeat.
// Each line is one IEEE operation; the sequence stands in fixed_math_constants.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/fixed_math_constants.hpp"
#include "core/host_device.hpp"

namespace lockstep::fixed {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

LOCKSTEP_HOST_DEVICE inline float exp_float(float x) {
    constexpr float c[5] = {kExp[0], kExp[1], kExp[2], kExp[3], kExp[4]};
    const float t = std::fma(x, kLog2E, kRoundMagic);
    const float n = t - kRoundMagic;
    float r = std::fma(n, -kLn2Hi, x);
    r = std::fma(n, -kLn2Lo, r);
    float p = c[4];
    for (int i = 3; i >= 0; --i) p = std::fma(p, r, c[i]);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    const float scale = __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, t) << 23) + kOneBits);
    float y = p * scale;
    if (x < kExpLowest) y = 0.0f;
    if (x > kExpHighest) y = kInfinity;
    return y;
}

LOCKSTEP_HOST_DEVICE inline float log_float(float x) {
    constexpr float c[9] = {kLog[0], kLog[1], kLog[2], kLog[3], kLog[4], kLog[5], kLog[6], kLog[7], kLog[8]};
    const uint32_t bits = __builtin_bit_cast(uint32_t, x);
    const int32_t k = static_cast<int32_t>(bits - kSqrtHalfBits) >> 23;
    const float m = __builtin_bit_cast(float, bits - (static_cast<uint32_t>(k) << 23));
    const float e = static_cast<float>(k);
    const float f = m - 1.0f;
    const float z = f * f;
    float p = c[8];
    for (int i = 7; i >= 0; --i) p = std::fma(p, f, c[i]);
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
