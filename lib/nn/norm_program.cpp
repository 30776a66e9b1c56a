#include "nn/norm_program.hpp"

#include <cstddef>

namespace lockstep {
namespace {

/// A binary counter over the leaves, each of which is a value of its own.
void merge_leaves(const FoldProgram& fold, NormProgram& program) {
    struct Held {
        int leaf;
        int64_t samples;
    };
    std::vector<Held> stack;
    for (std::size_t i = 0; i < fold.leaves.size(); ++i) {
        const FoldProgram::Leaf& leaf = fold.leaves[i];
        stack.push_back({static_cast<int>(i), leaf.end - leaf.begin});
        for (int a = 0; a < leaf.adds; ++a) {
            const Held right = stack.back();
            stack.pop_back();
            Held& left = stack.back();
            program.local.push_back({left.leaf, right.leaf, left.samples, right.samples});
            left.samples += right.samples;
        }
        if (leaf.root >= 0) {
            program.roots.push_back(stack.back().leaf);
            stack.pop_back();
        }
    }
    program.leaves = static_cast<int>(fold.leaves.size());
}

int64_t samples_of(ShardRange node, std::span<const int64_t> sizes) {
    int64_t sum = 0;
    for (int v = node.begin; v < node.end; ++v) sum += sizes[static_cast<std::size_t>(v)];
    return sum;
}

}  // namespace

NormProgram norm_program(int shards, std::span<const ShardRange> ranges, std::size_t rank,
                         std::span<const int64_t> sizes) {
    NormProgram program;
    std::vector<ShardRange> nodes;
    std::vector<int64_t> samples;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        if (r == rank) program.first_node = static_cast<int64_t>(nodes.size());
        const std::vector<ShardRange> own = maximal_nodes(shards, ranges[r], sizes);
        program.nodes_of_rank.push_back(static_cast<int64_t>(own.size()));
        for (const ShardRange node : own) {
            nodes.push_back(node);
            samples.push_back(samples_of(node, sizes));
            program.samples += samples.back();
        }
    }
    program.nodes = static_cast<int64_t>(nodes.size());
    merge_leaves(fold_program(shards, ranges[rank], sizes), program);
    for (const JoinStep step : join_program(shards, nodes)) {
        int64_t& into = samples[static_cast<std::size_t>(step.into)];
        const int64_t from = samples[static_cast<std::size_t>(step.from)];
        program.joins.push_back({step.into, step.from, into, from});
        into += from;
    }
    return program;
}

}  // namespace lockstep
