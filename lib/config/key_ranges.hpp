// The ranges that several rows of the key table share.
#pragma once

#include "config/key.hpp"

namespace lockstep {

inline constexpr double kMany = 1 << 30;  // keeps products of two sizes inside 64 bits
inline constexpr Range kPositive{.least = 0, .above = true};
inline constexpr Range kNotNegative{.least = 0};
inline constexpr Range kBelowOne{.least = 0, .most = 1, .below = true};  // [0, 1)
inline constexpr Range kShare{.least = 0, .most = 1};                    // [0, 1]
inline constexpr Range kCount{.least = 1, .most = kMany};
inline constexpr Range kCountOrZero{.least = 0, .most = kMany};
inline constexpr Range kUpdates{.least = 1, .most = 1e15};

}  // namespace lockstep
