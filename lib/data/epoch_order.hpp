// The order in which an epoch visits the data: a keyed bijection on 0 … N-1, computed and not stored, so that a billion
// samples cost no memory and any position can be asked for directly.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

enum class Shuffle { kNone, kFull, kBlock };

class EpochOrder {
  public:
    /// A function of (seed, epoch, samples) alone (and `block` for kBlock: a permutation of blocks, then one within each).
    EpochOrder(uint64_t seed, int64_t epoch, int64_t samples, Shuffle shuffle = Shuffle::kFull, int64_t block = 1024);
    /// The place in the data set of `position`, both in 0 … samples-1.
    int64_t index(int64_t position) const;

    // … implementation detail is the author's (Feistel network over Philox with cycle walking)
};

}  // namespace lockstep
