// Batch norm over the global batch: the moments of all ranks are merged up the canonical tree, written out as text.
#include "nn/norm_program.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// The canonical sum of [lo, hi) written out, "(a+b)"; empty shards are no terms.
std::string written_out(int lo, int hi, const std::vector<int64_t>& sizes) {
    if (hi - lo == 1) return sizes[static_cast<std::size_t>(lo)] == 0 ? "" : std::to_string(lo);
    const int middle = split_point(lo, hi);
    const std::string left = written_out(lo, middle, sizes);
    const std::string right = written_out(middle, hi, sizes);
    if (left.empty() || right.empty()) return left + right;
    return "(" + left + "+" + right + ")";
}

struct Part {
    std::string text;
    int64_t samples = 0;
};

void merge(std::vector<Part>& parts, const NodeMerge& step) {
    Part& into = parts[static_cast<std::size_t>(step.into)];
    const Part& from = parts[static_cast<std::size_t>(step.from)];
    CHECK(into.samples == step.into_samples);
    CHECK(from.samples == step.from_samples);
    into = {"(" + into.text + "+" + from.text + ")", into.samples + from.samples};
}

/// What rank `rank` ends up with, after hearing every rank's nodes.
Part total_of(int shards, const std::vector<ShardRange>& ranges, const std::vector<int64_t>& sizes, std::size_t rank) {
    std::vector<Part> nodes;
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        const NormProgram program = norm_program(shards, ranges, r, sizes);
        CHECK(program.first_node == static_cast<int64_t>(nodes.size()));
        std::vector<Part> leaves;
        for (int v = ranges[r].begin; v < ranges[r].end; ++v) {
            const int64_t size = sizes[static_cast<std::size_t>(v)];
            if (size > 0) leaves.push_back({std::to_string(v), size});
        }
        CHECK(program.leaves == static_cast<int>(leaves.size()));
        for (const NodeMerge& step : program.local) merge(leaves, step);
        for (const int root : program.roots) nodes.push_back(leaves[static_cast<std::size_t>(root)]);
        CHECK(program.nodes_of_rank[r] == static_cast<int64_t>(program.roots.size()));
    }
    const NormProgram program = norm_program(shards, ranges, rank, sizes);
    CHECK(program.nodes == static_cast<int64_t>(nodes.size()));
    for (const NodeMerge& step : program.joins) merge(nodes, step);
    CHECK(nodes[0].samples == program.samples);
    return nodes[0];
}

}  // namespace

TEST_CASE("moments are merged up the canonical tree, with their numbers of samples, at any number of ranks") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 400; ++round) {
        const int shards = 1 + static_cast<int>(random() % 20);
        std::vector<int64_t> sizes(static_cast<std::size_t>(shards));
        for (int64_t& size : sizes) size = random() % 4;
        sizes[random() % sizes.size()] = 2;
        const int world = 1 + static_cast<int>(random() % 9);
        std::vector<ShardRange> ranges;
        for (int r = 0; r < world; ++r) ranges.push_back(shards_of_rank(shards, r, world));
        const Part total = total_of(shards, ranges, sizes, random() % ranges.size());
        CHECK(total.text == written_out(0, shards, sizes));
        CHECK(total.samples == std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
    }
}

TEST_CASE("a rank without samples has no node, and knows how to join the others'") {
    const std::vector<int64_t> sizes{3, 0, 0, 2};
    const std::vector<ShardRange> ranges{{0, 1}, {1, 3}, {3, 4}};
    const NormProgram idle = norm_program(4, ranges, 1, sizes);
    CHECK(idle.leaves == 0);
    CHECK(idle.roots.empty());
    CHECK(idle.nodes_of_rank == std::vector<int64_t>{1, 0, 1});
    CHECK(idle.joins == std::vector<NodeMerge>{{0, 1, 3, 2}});
}

}  // namespace lockstep
