// The canonical tree and what is made of it, nodes and fold programs, against its definition. Sums are strings here, so
// that two orders of additions are equal exactly if they print the same.
#include "core/canonical_tree.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep {
namespace {

// Sums are strings: two orders of additions are equal exactly if they print the same.
std::string add(const std::string& left, const std::string& right) {
    return "(" + left + "+" + right + ")";
}

using Sizes = std::vector<int64_t>;

// The definition, word for word; "" is the sum of nothing.
std::string canonical(int lo, int hi, const Sizes& sizes) {
    if (hi - lo == 1) return sizes[static_cast<size_t>(lo)] == 0 ? "" : std::to_string(lo);
    int power = 1;
    while (2 * power < hi - lo) power *= 2;
    const std::string left = canonical(lo, lo + power, sizes);
    const std::string right = canonical(lo + power, hi, sizes);
    if (left.empty() || right.empty()) return left + right;
    return add(left, right);
}

// Runs a fold program: the sums of its roots.
std::vector<std::string> run(const FoldProgram& program) {
    std::vector<std::string> sums(program.roots.size());
    std::vector<std::string> stack;
    size_t deepest = 0;
    for (const FoldProgram::Leaf& leaf : program.leaves) {
        stack.push_back(std::to_string(leaf.shard));
        deepest = std::max(deepest, stack.size());
        for (int i = 0; i < leaf.adds; ++i) {
            const std::string right = stack.back();
            stack.pop_back();
            stack.back() = add(stack.back(), right);
        }
        if (leaf.root < 0) continue;
        if (stack.size() != 1) FAIL("a root is completed while " << stack.size() << " values are on the stack");
        sums[static_cast<size_t>(leaf.root)] = stack.back();
        stack.pop_back();
    }
    if (!stack.empty()) FAIL("values are left on the stack");
    if (static_cast<int>(deepest) != program.stack)
        FAIL("stack " << program.stack << " is said, " << deepest << " is used");
    return sums;
}

std::string total_of(std::vector<std::string> values, const std::vector<JoinStep>& steps) {
    for (const JoinStep& step : steps) {
        std::string& left = values[static_cast<size_t>(step.into)];
        std::string& right = values[static_cast<size_t>(step.from)];
        left = add(left, right);
        right = "used";
    }
    return values.empty() ? "" : values[0];
}

// The additions of all ranks and those between them, put together.
std::string distributed(int shards, int world, const Sizes& sizes) {
    std::vector<ShardRange> nodes;
    std::vector<std::string> sums;
    for (int rank = 0; rank < world; ++rank) {
        const FoldProgram program = fold_program(shards, shards_of_rank(shards, rank, world), sizes);
        nodes.insert(nodes.end(), program.roots.begin(), program.roots.end());
        for (const std::string& sum : run(program)) sums.push_back(sum);
    }
    return total_of(sums, join_program(shards, nodes));
}

// The twin: each rank adds its shards from the left, then the ranks are added in rank order.
std::string in_rank_order(int shards, int world) {
    std::string total;
    for (int rank = 0; rank < world; ++rank) {
        const ShardRange range = shards_of_rank(shards, rank, world);
        std::string sum;
        for (int v = range.begin; v < range.end; ++v)
            sum = sum.empty() ? std::to_string(v) : add(sum, std::to_string(v));
        if (!sum.empty()) total = total.empty() ? sum : add(total, sum);
    }
    return total;
}

TEST_CASE("a range splits behind the largest power of two smaller than its size", "[canonical_tree]") {
    CHECK(split_point(0, 2) == 1);
    CHECK(split_point(0, 3) == 2);
    CHECK(split_point(0, 4) == 2);
    CHECK(split_point(0, 5) == 4);
    CHECK(split_point(0, 8) == 4);
    CHECK(split_point(0, 9) == 8);
    CHECK(split_point(4, 7) == 6);
}

TEST_CASE("ranks own consecutive shards, each shard once, sizes differing by one at most", "[canonical_tree]") {
    for (int shards = 1; shards <= 40; ++shards) {
        for (int world = 1; world <= 45; ++world) {
            int next = 0;
            for (int rank = 0; rank < world; ++rank) {
                const ShardRange range = shards_of_rank(shards, rank, world);
                REQUIRE(range.begin == next);
                REQUIRE(range.size() >= shards / world);
                REQUIRE(range.size() <= shards / world + 1);
                next = range.end;
            }
            REQUIRE(next == shards);
        }
    }
}

TEST_CASE("any number of ranks adds the shards in the canonical order, also where shards are empty",
          "[canonical_tree]") {
    std::mt19937 random(20240607);  // fixed, so that a failure can be repeated
    for (int shards = 1; shards <= 40; ++shards) {
        std::vector<Sizes> cases = {Sizes(static_cast<size_t>(shards), 1), Sizes(static_cast<size_t>(shards), 0)};
        for (int i = 0; i < 6; ++i) {
            Sizes sizes(static_cast<size_t>(shards));
            for (int64_t& size : sizes) size = static_cast<int64_t>(random() % (i < 3 ? 2 : 5));
            cases.push_back(sizes);
        }
        for (const Sizes& sizes : cases) {
            const std::string expected = canonical(0, shards, sizes);
            for (int world = 1; world <= 40; ++world) {
                if (distributed(shards, world, sizes) != expected) FAIL("V = " << shards << ", W = " << world);
            }
        }
    }
}

TEST_CASE("adding in rank order is another sum as soon as it can be", "[canonical_tree]") {
    const Sizes ones(8, 1);
    const std::string expected = canonical(0, 8, ones);
    CHECK(expected == "(((0+1)+(2+3))+((4+5)+(6+7)))");
    CHECK(in_rank_order(8, 1) != expected);
    CHECK(in_rank_order(8, 2) != expected);
    CHECK(in_rank_order(8, 4) != expected);
    CHECK(in_rank_order(8, 8) != expected);
    CHECK(distributed(8, 3, ones) == expected);
}

TEST_CASE("maximal nodes cover a range with as few nodes as there are", "[canonical_tree]") {
    using Nodes = std::vector<ShardRange>;
    CHECK(maximal_nodes(8, {0, 8}) == Nodes{{0, 8}});
    CHECK(maximal_nodes(8, {2, 4}) == Nodes{{2, 4}});
    CHECK(maximal_nodes(8, {1, 6}) == Nodes{{1, 2}, {2, 4}, {4, 6}});
    CHECK(maximal_nodes(12, {8, 12}) == Nodes{{8, 12}});
    CHECK(maximal_nodes(5, {3, 5}) == Nodes{{3, 4}, {4, 5}});
    CHECK(maximal_nodes(5, {3, 3}).empty());
    for (const int shards : {64, 128, 1024}) {
        for (const int world : {1, 2, 4, 8, 16, 32}) {
            for (int rank = 0; rank < world; ++rank) {
                CHECK(maximal_nodes(shards, shards_of_rank(shards, rank, world)).size() == 1);
            }
        }
    }
}

TEST_CASE("nodes whose shards are all empty are left out, others keep their border", "[canonical_tree]") {
    using Nodes = std::vector<ShardRange>;
    const Sizes sizes = {1, 1, 0, 0, 0, 2};
    CHECK(maximal_nodes(6, {2, 6}, sizes) == Nodes{{4, 6}});
    CHECK(maximal_nodes(6, {0, 6}, Sizes(6, 0)).empty());
    CHECK(fold_program(6, {0, 6}, Sizes(6, 0)).leaves.empty());
}

TEST_CASE("a fold program numbers the local rows of its non-empty shards from 0", "[canonical_tree]") {
    const Sizes sizes = {9, 3, 0, 2, 4};
    const FoldProgram program = fold_program(5, {1, 5}, sizes);
    REQUIRE(program.leaves.size() == 3);
    CHECK(program.rows == 9);
    CHECK(program.leaves[0].shard == 1);
    CHECK(program.leaves[0].begin == 0);
    CHECK(program.leaves[0].end == 3);
    CHECK(program.leaves[1].shard == 3);
    CHECK(program.leaves[1].begin == 3);
    CHECK(program.leaves[1].end == 5);
    CHECK(program.leaves[2].shard == 4);
    CHECK(program.leaves[2].begin == 5);
    CHECK(program.leaves[2].end == 9);
    CHECK(program.roots == std::vector<ShardRange>{{1, 2}, {2, 4}, {4, 5}});
}

TEST_CASE("a stack as deep as the tree is enough", "[canonical_tree]") {
    CHECK(fold_program(1, {0, 1}, Sizes(1, 1)).stack == 1);
    CHECK(fold_program(2, {0, 2}, Sizes(2, 1)).stack == 2);
    CHECK(fold_program(8, {0, 8}, Sizes(8, 1)).stack == 4);
    CHECK(fold_program(64, {0, 64}, Sizes(64, 1)).stack == 7);
}

TEST_CASE("a list of nodes that are not the tree's, or of sizes that do not fit, is refused", "[canonical_tree]") {
    const std::vector<ShardRange> crossing = {{0, 1}, {1, 3}, {3, 4}};
    CHECK_THROWS_AS(join_program(4, crossing), Error);
    const std::vector<ShardRange> disordered = {{2, 4}, {0, 2}};
    CHECK_THROWS_AS(join_program(4, disordered), Error);
    CHECK_THROWS_AS(fold_program(4, {0, 4}, Sizes(3, 1)), Error);
    CHECK(join_program(4, std::vector<ShardRange>{{0, 4}}).empty());
}

}  // namespace
}  // namespace lockstep
