// The one order in which shard sums are added, and the additions of any part of it as data.
//
// Over shards [lo, hi): split at lo + the largest power of two smaller than hi - lo, add left + right (the
// left-complete tree of RFC 6962). An empty shard contributes nothing: its sibling passes through unchanged.
// Kernels (FoldProgram), the reducer (nodes), plan and the tests all read what these pure functions make.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Shards [begin, end).
struct ShardRange {
    int begin = 0;
    int end = 0;
    int size() const { return end - begin; }
    bool empty() const { return end <= begin; }
    bool operator==(const ShardRange&) const = default;
};

/// Where the canonical tree splits [lo, hi), hi - lo >= 2: lo + the largest power of two smaller than hi - lo.
int split_point(int lo, int hi);

/// Rank r's shards of V at world W: [floor(r V / W), floor((r+1) V / W)).
ShardRange shards_of_rank(int shards, int rank, int world);

/// The maximal nodes of the tree over [0, shards) that lie inside `range`, left to right. One for a rank where W and V
/// are powers of two; at most about 2 log2(V).
std::vector<ShardRange> maximal_nodes(int shards, ShardRange range);

/// The same without the nodes whose shards are all empty (`sizes` has one entry for each of the `shards`).
std::vector<ShardRange> maximal_nodes(int shards, ShardRange range, std::span<const int64_t> sizes);

/// How a walk over the non-empty shards of a range adds them up, with a stack: for the i-th non-empty shard push its
/// sum on the stack, then `adds[i]` times pop right, pop left, push left + right. If `root[i]` >= 0 the stack then
/// holds one value, the sum of the maximal node number root[i]: pop it and store it there.
struct FoldProgram {
    struct Leaf {
        int shard;  // number in 0 … V-1
        int begin;  // first local row (sample) of this shard
        int end;    // one past its last
        int adds;   // additions after it
        int root;   // number of the root completed by it, or -1
    };
    std::vector<Leaf> leaves;       // non-empty shards, in order
    std::vector<ShardRange> roots;  // the node behind each root, in order
    int rows = 0;                   // local rows in total
    int stack = 0;                  // most values on the stack at once
};

/// The additions for local shards `range` whose sizes are `sizes[v]` samples for v in 0 … shards-1 (all shards of the
/// job: only those in `range` are read). Rows are numbered from 0 in shard order.
FoldProgram fold_program(int shards, ShardRange range, std::span<const int64_t> sizes);

/// One value per node of a list, added up to the total of the whole tree: `steps` of (into, from): value[into] +=
/// value[from] (left + right, into is left), after which value[0] is the total. `nodes` must be all the non-empty
/// maximal nodes of all ranks, left to right. Empty for one node.
struct JoinStep {
    int into;
    int from;
    bool operator==(const JoinStep&) const = default;
};
std::vector<JoinStep> join_program(int shards, std::span<const ShardRange> nodes);

}  // namespace lockstep
