// The leaves of a rank, dealt to streams: the additions are those of the canonical tree, written out as text.
#include "nn/leaf_program.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
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

std::vector<std::string> run(const LeafProgram& program, const FoldProgram& local, std::vector<SlotAdd> joins) {
    std::vector<std::string> slots(static_cast<std::size_t>(program.slots));
    const auto add = [&](SlotAdd operands) {
        std::string& into = slots[static_cast<std::size_t>(operands.into)];
        into = "(" + into + "+" + slots[static_cast<std::size_t>(operands.from)] + ")";
    };
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
        const LeafProgram::Leaf& leaf = program.leaves[i];
        slots[static_cast<std::size_t>(leaf.slot)] = std::to_string(local.leaves[i].shard);
        for (int a = leaf.adds_begin; a < leaf.adds_end; ++a) add(program.adds[static_cast<std::size_t>(a)]);
    }
    for (const SlotAdd& join : joins) add(join);
    std::vector<std::string> sums;
    for (const int root : program.roots) sums.push_back(slots[static_cast<std::size_t>(root)]);
    return sums;
}

}  // namespace

TEST_CASE("dealt to any number of streams, leaves are added in the canonical order") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    int joined = 0;
    int broken = 0;
    for (int round = 0; round < 2000; ++round) {
        const int shards = 1 + static_cast<int>(random() % 20);
        std::vector<int64_t> sizes(static_cast<std::size_t>(shards));
        for (int64_t& size : sizes) size = random() % 4;
        const int begin = static_cast<int>(random() % static_cast<unsigned>(shards));
        const ShardRange local{begin, begin + 1 + static_cast<int>(random() % static_cast<unsigned>(shards - begin))};
        const FoldProgram fold = fold_program(shards, local, sizes);
        if (fold.leaves.empty()) continue;
        // Cut the leaves at random borders.
        std::set<int> borders{0, static_cast<int>(fold.leaves.size())};
        for (unsigned cut = random() % 4; cut > 0; --cut)
            borders.insert(static_cast<int>(random() % (fold.leaves.size() + 1)));
        std::vector<ShardRange> ranges;
        for (auto at = borders.begin(); std::next(at) != borders.end(); ++at) ranges.push_back({*at, *std::next(at)});
        const LeafProgram program = leaf_program(shards, fold, sizes, ranges);
        std::vector<std::string> expected;
        for (const ShardRange root : fold.roots) expected.push_back(written_out(root.begin, root.end, sizes));
        REQUIRE(run(program, fold, program.joins) == expected);
        // The twin: joining in another order is caught.
        if (program.joins.size() > 1) {
            ++joined;
            std::vector<SlotAdd> reversed = program.joins;
            std::reverse(reversed.begin(), reversed.end());
            broken += run(program, fold, reversed) != expected ? 1 : 0;
        }
    }
    CHECK(joined > 100);
    CHECK(broken > 50);
}

TEST_CASE("one stream and a power of two of shards need log2(V) + 1 slots") {
    const std::vector<int64_t> sizes(64, 2);
    const FoldProgram fold = fold_program(64, {0, 64}, sizes);
    const std::vector<ShardRange> all{{0, 64}};
    CHECK(leaf_program(64, fold, sizes, all).slots == 7);
}

TEST_CASE("streams share no slot") {
    const std::vector<int64_t> sizes(12, 1);
    const FoldProgram fold = fold_program(12, {0, 12}, sizes);
    const std::vector<ShardRange> ranges{{0, 5}, {5, 9}, {9, 12}};
    const LeafProgram program = leaf_program(12, fold, sizes, ranges);
    std::vector<std::set<int>> used(3);
    for (std::size_t r = 0; r < 3; ++r) {
        for (int i = ranges[r].begin; i < ranges[r].end; ++i) {
            const LeafProgram::Leaf& leaf = program.leaves[static_cast<std::size_t>(i)];
            used[r].insert(leaf.slot);
            for (int a = leaf.adds_begin; a < leaf.adds_end; ++a) {
                used[r].insert(program.adds[static_cast<std::size_t>(a)].into);
                used[r].insert(program.adds[static_cast<std::size_t>(a)].from);
            }
        }
    }
    CHECK(static_cast<int>(used[0].size() + used[1].size() + used[2].size()) == program.slots);
}

}  // namespace lockstep
