#include "nn/pass_program.hpp"

#include <cstddef>
#include <numeric>

namespace lockstep {
namespace {

/// The maximal nodes of every pass, left to right, and the pass of each.
struct Nodes {
    std::vector<ShardRange> all;
    std::vector<std::size_t> pass;
};

void cut(ShardRange range, std::span<const int64_t> sizes, int64_t most_rows, PassProgram& program) {
    int row = 0;
    for (int v = range.begin; v < range.end; ++v) {
        const auto size = static_cast<int>(sizes[static_cast<std::size_t>(v)]);
        if (size == 0) continue;
        const bool fits = !program.passes.empty() && (most_rows == 0 || program.passes.back().rows + size <= most_rows);
        if (!fits) program.passes.push_back({{v, v}, row, 0, {}});
        program.passes.back().shards.end = v + 1;
        program.passes.back().rows += size;
        row += size;
    }
    // Empty shards go with their neighbours, so that whole nodes of the tree stay whole.
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
        if (p == 0) program.passes[p].shards.begin = range.begin;
        program.passes[p].shards.end = p + 1 < program.passes.size() ? program.passes[p + 1].shards.begin : range.end;
    }
}

/// What is added once each pass is done: a node's sum as soon as both of its halves are there.
std::vector<std::vector<JoinStep>> joins_of(std::span<const ShardRange> roots, const Nodes& nodes, std::size_t passes) {
    std::vector<std::vector<JoinStep>> joins(passes);
    std::vector<int> last(nodes.all.size());  // of the nodes that a sum holds by now
    std::iota(last.begin(), last.end(), 0);
    std::size_t next = 0;
    for (const ShardRange root : roots) {
        const auto first = static_cast<int>(next);
        std::vector<ShardRange> below;  // the tree below a node depends on its size alone
        for (; next < nodes.all.size() && nodes.all[next].begin < root.end; ++next) {
            below.push_back({nodes.all[next].begin - root.begin, nodes.all[next].end - root.begin});
        }
        for (const JoinStep step : join_program(root.size(), below)) {
            const auto into = static_cast<std::size_t>(first + step.into);
            const auto from = static_cast<std::size_t>(first + step.from);
            last[into] = last[from];
            joins[nodes.pass[static_cast<std::size_t>(last[from])]].push_back({first + step.into, first + step.from});
        }
    }
    return joins;
}

}  // namespace

PassProgram pass_program(int shards, ShardRange range, std::span<const int64_t> sizes, int64_t most_rows) {
    PassProgram program;
    cut(range, sizes, most_rows, program);
    const std::vector<ShardRange> roots = maximal_nodes(shards, range, sizes);
    program.roots = program.sums = static_cast<int>(roots.size());
    Nodes nodes;
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
        for (const ShardRange node : maximal_nodes(shards, program.passes[p].shards, sizes)) {
            nodes.all.push_back(node);
            nodes.pass.push_back(p);
        }
    }
    const std::vector<std::vector<JoinStep>> joins = joins_of(roots, nodes, program.passes.size());

    std::vector<int> place(nodes.all.size());  // of each node's sum
    std::vector<int> free;
    std::size_t node = 0;
    std::size_t root = 0;
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
        PassProgram::Pass& pass = program.passes[p];
        for (; node < nodes.all.size() && nodes.pass[node] == p; ++node) {
            const bool begins_root = root < roots.size() && nodes.all[node].begin >= roots[root].begin;
            if (begins_root) {
                place[node] = static_cast<int>(root++);
            } else {
                if (free.empty()) free.push_back(program.sums++);
                place[node] = free.back();
                free.pop_back();
            }
            pass.sums.push_back(place[node]);
        }
        pass.adds_begin = static_cast<int>(program.adds.size());
        for (const JoinStep step : joins[p]) {
            const int from = place[static_cast<std::size_t>(step.from)];
            program.adds.push_back({place[static_cast<std::size_t>(step.into)], from});
            free.push_back(from);
        }
        pass.adds_end = static_cast<int>(program.adds.size());
    }
    return program;
}

}  // namespace lockstep
