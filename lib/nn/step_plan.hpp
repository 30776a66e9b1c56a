// Everything about a pass over the network that depends on its rows but not on their values: the fold program, what is
// dealt to which stream, and where each array lies in the network's arena. Made once for each pattern of shard sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"
#include "nn/graph.hpp"
#include "nn/leaf_program.hpp"

namespace lockstep {

/// Rows [first, first + rows) that the prefix takes at a time: a shard in training, a handful of rows in evaluation.
struct Block {
    int first = 0;
    int rows = 0;
    int number = 0;  // of the plan's blocks
};

struct StepPlan {
    int number = 0;
    bool training = true;
    FoldProgram fold;                // evaluation: all rows are one shard
    std::vector<Block> blocks;       // training: one for each leaf of the fold program
    std::vector<ShardRange> ranges;  // of blocks: what each stream works on
    int piece_rows = 1;              // of a block, at most, that go forward together
    LeafProgram leaves;              // training, where the prefix has weights

    // Byte offsets in the arena.
    std::vector<int64_t> kept;  // of MemoryPlan's kept arrays
    std::vector<int64_t> taps;  // of each layer of the prefix
    int64_t transient = 0;      // [range][transient_bytes]
    int64_t transient_bytes = 0;
    std::vector<int64_t> transient_places;  // of MemoryPlan's transient places, in a range's part
    std::vector<int64_t> gradient_arrays;   // of MemoryPlan's gradients
    int64_t statistics = 0;                 // [block][statistics_bytes]
    int64_t statistics_bytes = 0;
    int64_t losses = 0;      // [rows]
    int64_t leaf_slots = 0;  // [slots][leaf_bytes]
    int64_t leaf_bytes = 0;
    int64_t bytes = 0;  // of all of it

    std::vector<float*> gradients, loss_sums;  // the roots' pointers of the current step

    /// The forward pass keeps a layer's output in the second-level cache until the next layer has read it.
    int pieces(Block block) const { return (block.rows + piece_rows - 1) / piece_rows; }
    Block piece(Block block, int which) const;

    /// Whether the rows are cut and added in the same way: then one plan serves both.
    bool equals(bool training_, const FoldProgram& fold_) const;
};

/// Training: `sizes` has one entry for each of the `shards`.
/// `norm_elements`: of a block's statistics.
StepPlan plan_training(const Graph& graph, int shards, ShardRange range, std::span<const int64_t> sizes,
                       int64_t norm_elements);
/// Evaluation of shards of these sizes, which nothing adds up.
StepPlan plan_evaluation(const Graph& graph, std::span<const int64_t> sizes);

}  // namespace lockstep
