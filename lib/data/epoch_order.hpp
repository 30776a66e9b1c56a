// The order in which an epoch visits the data: a keyed bijection on 0 … N-1, computed and not stored, so that a billion
// samples cost no memory and any position can be asked for directly.
#pragma once

#include <cstdint>

#include "core/philox.hpp"

namespace lockstep {

enum class Shuffle { kNone, kFull, kBlock };

class EpochOrder {
  public:
    /// A function of (seed, epoch, samples) alone (and `block` for kBlock: a permutation of blocks, then one within
    /// each). `purpose`: another one gives another order, unrelated to any epoch's.
    EpochOrder(uint64_t seed, int64_t epoch, int64_t samples, Shuffle shuffle = Shuffle::kFull, int64_t block = 1024,
               Purpose purpose = Purpose::kEpochOrder);
    /// The place in the data set of `position`, both in 0 … samples-1.
    int64_t index(int64_t position) const;

  private:
    // A keyed bijection on 0 … size-1: an alternating Feistel network on the pairs (left, right) of a grid of rows x
    // columns cells, rows * columns >= size by less than one row, walking on from a cell >= size to the next.
    struct Bijection {
        explicit Bijection(int64_t size);
        int64_t map(int64_t x, PhiloxKey key, uint64_t tag) const;
        int64_t inverse(int64_t y, PhiloxKey key, uint64_t tag) const;
        int64_t size;
        uint64_t rows;
        uint64_t columns;
        int half_rounds;
    };
    int64_t index_in_blocks(int64_t position) const;

    Shuffle shuffle_;
    PhiloxKey key_;
    int64_t block_;
    Bijection outer_;        // of samples (kFull) or of blocks (kBlock)
    Bijection whole_;        // within a block of full length
    Bijection last_;         // within the last block
    int64_t last_slot_ = 0;  // where the last block, perhaps a short one, stands among the blocks
};

}  // namespace lockstep
