#include "core/canonical_tree.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace lockstep {
namespace {

bool all_empty(ShardRange node, std::span<const int64_t> sizes) {
    return std::all_of(sizes.begin() + node.begin, sizes.begin() + node.end, [](int64_t size) { return size == 0; });
}

void check_sizes(int shards, std::span<const int64_t> sizes) {
    if (static_cast<int64_t>(sizes.size()) != shards) {
        fail(ErrorKind::kRuntime, "{} shard sizes were given for {} shards", sizes.size(), shards);
    }
}

void collect_maximal(ShardRange node, ShardRange range, std::vector<ShardRange>& out) {
    if (node.empty() || node.end <= range.begin || range.end <= node.begin) return;
    if (range.begin <= node.begin && node.end <= range.end) {
        out.push_back(node);
        return;
    }
    const int middle = split_point(node.begin, node.end);
    collect_maximal({node.begin, middle}, range, out);
    collect_maximal({middle, node.end}, range, out);
}

// Appends the non-empty leaves of `node`; whether there were any. An addition belongs to the last leaf below it, since
// both of its operands are known only then.
bool walk(ShardRange node, std::span<const int64_t> sizes, FoldProgram& program) {
    if (node.size() == 1) {
        const int64_t size = sizes[static_cast<size_t>(node.begin)];
        if (size == 0) return false;
        const int begin = program.rows;
        program.rows += static_cast<int>(size);
        program.leaves.push_back({node.begin, begin, program.rows, 0, -1});
        return true;
    }
    const int middle = split_point(node.begin, node.end);
    const bool left = walk({node.begin, middle}, sizes, program);
    const bool right = walk({middle, node.end}, sizes, program);
    if (left && right) ++program.leaves.back().adds;
    return left || right;
}

int deepest_stack(const FoldProgram& program) {
    int depth = 0;
    int deepest = 0;
    for (const FoldProgram::Leaf& leaf : program.leaves) {
        deepest = std::max(deepest, ++depth);
        depth -= leaf.adds;
        if (leaf.root >= 0) --depth;
    }
    return deepest;
}

constexpr int kNothing = -1;

// The number of the value that holds the sum of `node` once the steps so far are done; kNothing if it is empty.
// `next` is the first node of the list not yet met.
int join(ShardRange node, std::span<const ShardRange> nodes, int& next, std::vector<JoinStep>& steps) {
    if (next == static_cast<int>(nodes.size()) || nodes[static_cast<size_t>(next)].begin >= node.end) return kNothing;
    if (nodes[static_cast<size_t>(next)] == node) return next++;
    if (node.size() == 1) return kNothing;
    const int middle = split_point(node.begin, node.end);
    const int left = join({node.begin, middle}, nodes, next, steps);
    const int right = join({middle, node.end}, nodes, next, steps);
    if (left != kNothing && right != kNothing) steps.push_back({left, right});
    return left != kNothing ? left : right;
}

}  // namespace

int split_point(int lo, int hi) {
    return lo + static_cast<int>(std::bit_floor(static_cast<unsigned>(hi - lo - 1)));
}

ShardRange shards_of_rank(int shards, int rank, int world) {
    const auto border = [&](int r) { return static_cast<int>(int64_t{r} * shards / world); };
    return {border(rank), border(rank + 1)};
}

std::vector<ShardRange> maximal_nodes(int shards, ShardRange range) {
    std::vector<ShardRange> nodes;
    if (!range.empty()) collect_maximal({0, shards}, range, nodes);
    return nodes;
}

std::vector<ShardRange> maximal_nodes(int shards, ShardRange range, std::span<const int64_t> sizes) {
    check_sizes(shards, sizes);
    std::vector<ShardRange> nodes = maximal_nodes(shards, range);
    std::erase_if(nodes, [&](ShardRange node) { return all_empty(node, sizes); });
    return nodes;
}

FoldProgram fold_program(int shards, ShardRange range, std::span<const int64_t> sizes) {
    FoldProgram program;
    program.roots = maximal_nodes(shards, range, sizes);
    for (size_t number = 0; number < program.roots.size(); ++number) {
        walk(program.roots[number], sizes, program);
        program.leaves.back().root = static_cast<int>(number);
    }
    program.stack = deepest_stack(program);
    return program;
}

std::vector<JoinStep> join_program(int shards, std::span<const ShardRange> nodes) {
    std::vector<JoinStep> steps;
    int next = 0;
    if (shards > 0) join({0, shards}, nodes, next, steps);
    if (next != static_cast<int>(nodes.size())) {
        const ShardRange stray = nodes[static_cast<size_t>(next)];
        fail(ErrorKind::kRuntime, "shards [{}, {}) are no node of the canonical tree over {} shards, or out of order",
             stray.begin, stray.end, shards);
    }
    return steps;
}

}  // namespace lockstep
