// What two ranks, or a run and its checkpoint, must have in common.
#pragma once

namespace lockstep {

/// Program version, as CMake's project(VERSION).
const char* version();

/// The number of the arithmetic (docs/arithmetic.md). Every change of a bit needs a new one.
inline constexpr const char* kArithmetic = "1";

/// The numeric fingerprint of the CPU backend: "arithmetic 1".
inline constexpr const char* kNumericFingerprint = "arithmetic 1";

}  // namespace lockstep
