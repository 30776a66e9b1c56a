#include "nn/leaf_program.hpp"

#include <cstddef>

namespace lockstep {
namespace {

/// The sum of a whole node of the tree, left in a slot by one range.
struct Held {
    ShardRange node;
    int slot;
};

/// One range alone: a binary counter, whose stack takes the slots that are free. A finished root keeps its slot.
void fold_range(int shards, std::span<const int64_t> sizes, ShardRange shard_range, LeafProgram& program,
                std::vector<Held>& held) {
    const FoldProgram fold = fold_program(shards, shard_range, sizes);
    std::vector<int> stack;
    std::vector<int> free_slots;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        if (free_slots.empty()) free_slots.push_back(program.slots++);
        stack.push_back(free_slots.back());
        free_slots.pop_back();
        const auto begin = static_cast<int>(program.adds.size());
        const int slot = stack.back();
        for (int a = 0; a < leaf.adds; ++a) {
            const int right = stack.back();
            stack.pop_back();
            program.adds.push_back({stack.back(), right});
            free_slots.push_back(right);
        }
        program.leaves.push_back({slot, begin, static_cast<int>(program.adds.size())});
        if (leaf.root >= 0) {
            held.push_back({fold.roots[static_cast<std::size_t>(leaf.root)], stack.back()});
            stack.pop_back();
        }
    }
}

}  // namespace

LeafProgram leaf_program(int shards, const FoldProgram& local, std::span<const int64_t> sizes,
                         std::span<const ShardRange> ranges) {
    LeafProgram program;
    std::vector<Held> held;
    for (const ShardRange range : ranges) {
        if (range.empty()) continue;
        const int first = local.leaves[static_cast<std::size_t>(range.begin)].shard;
        const int last = local.leaves[static_cast<std::size_t>(range.end) - 1].shard;
        fold_range(shards, sizes, {first, last + 1}, program, held);
    }
    // A maximal node of a range lies inside one maximal node of the rank. Below [lo, hi) the tree is that of hi - lo
    // shards moved by lo, since a split depends on the size alone.
    std::size_t next = 0;
    for (const ShardRange root : local.roots) {
        const std::size_t first = next;
        std::vector<ShardRange> nodes;
        for (; next < held.size() && held[next].node.begin < root.end; ++next) {
            nodes.push_back({held[next].node.begin - root.begin, held[next].node.end - root.begin});
        }
        for (const JoinStep step : join_program(root.size(), nodes)) {
            program.joins.push_back({held[first + static_cast<std::size_t>(step.into)].slot,
                                     held[first + static_cast<std::size_t>(step.from)].slot});
        }
        program.roots.push_back(held[first].slot);
    }
    return program;
}

}  // namespace lockstep
