// The shards of a rank taken in passes: the additions stay those of the canonical tree, written out as text.
#include "nn/pass_program.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
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

/// The rank's sums after all passes. A sum that is written while it still holds one that is needed is lost.
std::vector<std::string> run(const PassProgram& program, int shards, const std::vector<int64_t>& sizes) {
    std::vector<std::string> sums(static_cast<std::size_t>(program.sums));
    for (const PassProgram::Pass& pass : program.passes) {
        const std::vector<ShardRange> nodes = maximal_nodes(shards, pass.shards, sizes);
        REQUIRE(pass.sums.size() == nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            sums[static_cast<std::size_t>(pass.sums[i])] = written_out(nodes[i].begin, nodes[i].end, sizes);
        }
        for (int a = pass.adds_begin; a < pass.adds_end; ++a) {
            const SlotAdd operands = program.adds[static_cast<std::size_t>(a)];
            std::string& into = sums[static_cast<std::size_t>(operands.into)];
            into = "(" + into + "+" + sums[static_cast<std::size_t>(operands.from)] + ")";
        }
    }
    sums.resize(static_cast<std::size_t>(program.roots));
    return sums;
}

std::vector<std::string> expected_sums(int shards, ShardRange range, const std::vector<int64_t>& sizes) {
    std::vector<std::string> sums;
    for (const ShardRange node : maximal_nodes(shards, range, sizes)) {
        sums.push_back(written_out(node.begin, node.end, sizes));
    }
    return sums;
}

}  // namespace

TEST_CASE("cut into any passes, sums are added in the canonical order") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 3000; ++round) {
        const int shards = 1 + static_cast<int>(random() % 20);
        std::vector<int64_t> sizes(static_cast<std::size_t>(shards));
        for (int64_t& size : sizes) size = random() % 4;
        const int begin = static_cast<int>(random() % static_cast<unsigned>(shards));
        const ShardRange range{begin, begin + 1 + static_cast<int>(random() % static_cast<unsigned>(shards - begin))};
        const auto most = static_cast<int64_t>(random() % 12);
        CAPTURE(shards, sizes, range.begin, range.end, most);
        const PassProgram program = pass_program(shards, range, sizes, most);
        CHECK(run(program, shards, sizes) == expected_sums(shards, range, sizes));

        int64_t rows = 0;
        int next = range.begin;
        for (const PassProgram::Pass& pass : program.passes) {
            CHECK(pass.first_row == rows);
            CHECK(pass.shards.begin == next);
            int64_t of_shards = 0, filled = 0;
            for (int v = pass.shards.begin; v < pass.shards.end; ++v) {
                of_shards += sizes[static_cast<std::size_t>(v)];
                filled += sizes[static_cast<std::size_t>(v)] > 0;
            }
            CHECK(pass.rows == of_shards);
            CHECK(pass.rows > 0);
            CHECK((most == 0 || pass.rows <= most || filled == 1));
            rows += pass.rows;
            next = pass.shards.end;
        }
        if (!program.passes.empty()) CHECK(next == range.end);
        if (most == 0 && !program.passes.empty()) {
            CHECK(program.passes.size() == 1);
            CHECK(program.sums == program.roots);
        }
    }
}

TEST_CASE("shards one by one need few sums beside the rank's own") {
    const std::vector<int64_t> sizes(64, 3);
    const PassProgram program = pass_program(64, {0, 64}, sizes, 1);
    CHECK(program.passes.size() == 64);
    CHECK(program.roots == 1);
    CHECK(program.sums == 7);
}

TEST_CASE("twin: sums added as the passes come are not the tree's") {
    const std::vector<int64_t> sizes(4, 1);
    PassProgram program = pass_program(4, {0, 4}, sizes, 1);
    REQUIRE(run(program, 4, sizes) == expected_sums(4, {0, 4}, sizes));
    for (std::size_t p = 1; p < 4; ++p) {
        program.passes[p].sums = {1};
        program.passes[p].adds_begin = static_cast<int>(p) - 1;
        program.passes[p].adds_end = static_cast<int>(p);
    }
    program.adds.assign(3, {0, 1});
    program.sums = 2;
    CHECK(run(program, 4, sizes) != expected_sums(4, {0, 4}, sizes));
}

}  // namespace lockstep
