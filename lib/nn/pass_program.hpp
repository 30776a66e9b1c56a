// A step that takes its rows in several passes, so that fewer activations are held at once: which local shards go
// together, and how the sums of the passes are added. Pure data; the additions are the canonical tree's whatever the
// passes are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"
#include "nn/leaf_program.hpp"

namespace lockstep {

struct PassProgram {
    struct Pass {
        ShardRange shards;
        int first_row = 0;  // of the rank's rows
        int rows = 0;
        std::vector<int> sums;             // where the sum of each maximal node of these shards goes
        int adds_begin = 0, adds_end = 0;  // of `adds`: done once those sums are there
    };
    std::vector<Pass> passes;
    std::vector<SlotAdd> adds;
    int roots = 0;  // sums 0 … roots-1 end as those of the rank's maximal nodes
    int sums = 0;   // the others are free again after their last addition
};

/// Passes of whole shards with at most `most_rows` samples each, or of one shard; 0 = all in one; none without samples.
/// `sizes`: of all `shards`; `range`: this rank's.
PassProgram pass_program(int shards, ShardRange range, std::span<const int64_t> sizes, int64_t most_rows);

}  // namespace lockstep
