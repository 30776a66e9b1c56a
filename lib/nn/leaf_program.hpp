// Where the gradients of the convolutional prefix are added when each shard gives one leaf: the fold program of the
// local shards, dealt to several streams, as additions between few buffers ("slots"). Pure data; the additions are the
// canonical tree's whatever the number of streams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"

namespace lockstep {

/// slot[into] = slot[into] + slot[from]: into is the left operand.
struct SlotAdd {
    int into;
    int from;
    bool operator==(const SlotAdd&) const = default;
};

struct LeafProgram {
    struct Leaf {
        int slot;                  // where this leaf is written
        int adds_begin, adds_end;  // of `adds`: done right after it
    };
    std::vector<Leaf> leaves;  // of local.leaves, in order; a range's leaves touch no other range's slots
    std::vector<SlotAdd> adds;
    std::vector<SlotAdd> joins;  // after all ranges: what crosses their borders
    std::vector<int> roots;      // the slot that holds the sum of local.roots[i] in the end
    int slots = 0;
};

/// `local`: the fold program of this rank's shards, of `shards` with `sizes`; `ranges`: how its leaves are dealt to
/// streams.
LeafProgram leaf_program(int shards, const FoldProgram& local, std::span<const int64_t> sizes,
                         std::span<const ShardRange> ranges);

}  // namespace lockstep
