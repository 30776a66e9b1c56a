// Lengths that arithmetic 1 states and every backend keeps: where its sums are cut.
#pragma once

#include <cstdint>

namespace lockstep {

/// Values on the stack of a fold program: at most log2 of the shards, and one more.
inline constexpr int kMaxFoldStack = 40;

/// Elements of a tensor whose squares are summed in one block (16 fp64 chains).
inline constexpr int64_t kSquareBlock = 4096;

/// A larger average kernel sums in blocks of chains.
inline constexpr int kPlainAverageTaps = 64;
inline constexpr int kAverageBlock = 256;

}  // namespace lockstep
