// Where the moments and gradient sums of batch norm are merged: this rank's shards up to its nodes of the canonical
// tree, then the nodes of all ranks, which every rank finishes by itself. Pure data; the tree is that of the gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"

namespace lockstep {

/// value[into] = merge(value[into], value[from]), of so many samples each.
struct NodeMerge {
    int into, from;
    int64_t into_samples, from_samples;
    bool operator==(const NodeMerge&) const = default;
};

struct NormProgram {
    std::vector<NodeMerge> local;        // of this rank's shards that are not empty, numbered in order
    std::vector<int> roots;              // of these, those that then hold this rank's nodes
    std::vector<int64_t> nodes_of_rank;  // how many nodes each rank has
    std::vector<NodeMerge> joins;        // of the nodes of all ranks, in the order of ranks; 0 holds the total then
    int64_t first_node = 0;              // of this rank
    int64_t nodes = 0;
    int64_t samples = 0;  // of all shards
    int leaves = 0;       // of this rank's shards, those that are not empty
};

/// `ranges`: the shards of each rank, of which number `rank` is this one. Shards of no range do not exist.
NormProgram norm_program(int shards, std::span<const ShardRange> ranges, std::size_t rank,
                         std::span<const int64_t> sizes);

}  // namespace lockstep
