// How many rows an evaluation takes at a time, on a CPU and on a device with memory of its own.
#include "nn/step_plan.hpp"

#include <catch2/catch.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/separate_memory_backend.hpp"
#include "nn/graph.hpp"

namespace lockstep {
namespace {

/// Rows of the blocks that an evaluation of these shards is cut into.
std::vector<int> evaluated_rows(Backend& backend, const std::vector<int64_t>& sizes) {
    ModelSpec spec;
    spec.name = "lenet";
    spec.input = {12, 12, 1};
    spec.channels = {3, 5};
    const Graph graph(build_model(spec), backend);
    std::vector<int> rows;
    for (const Block& block : plan_evaluation(graph, sizes).blocks) rows.push_back(block.rows);
    return rows;
}

}  // namespace

TEST_CASE("an evaluation takes a few rows at a time where they stay in a cache, and a whole shard where none would") {
    const std::vector<int64_t> sizes{40, 0, 7, 16};
    const auto cpu = make_cpu_backend({});
    CHECK(evaluated_rows(*cpu, sizes) == std::vector<int>{16, 16, 8, 7, 16});
    test::SeparateMemoryBackend device(make_cpu_backend({}));
    CHECK(evaluated_rows(device, sizes) == std::vector<int>{40, 7, 16});
}

}  // namespace lockstep
