// What `plan` tells of memory, passes included, and what a device that is too small is advised to set.
#include <catch2/catch.hpp>
#include <map>

#include "core/error.hpp"
#include "train/forecasts.hpp"
#include "train/memory_advice.hpp"
#include "train/traced_run.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("with batch.micro the activations of one pass are told, and the sums that passes need") {
    Config config = odd_config(8, "batch");
    config.batch.micro = 1;
    const TracedRank traced = traced_run(config, 1).at(0);
    const MemoryForecast memory = forecast_of(config, {1}).worlds.at(0).ranks.at(0).memory;
    CHECK(memory.activations == traced.arena_bytes);
    CHECK(memory.gradients == 4 * (kLead * 4 + memory.weights));  // one sum, and log2(8) of passes
    config.batch.micro = 0;
    CHECK(memory.activations < forecast_of(config, {1}).worlds.at(0).ranks.at(0).memory.activations / 3);
}

TEST_CASE("passes that a training refuses, the forecast does, at the numbers of ranks where they would be") {
    Config config = odd_config(8, "batch");
    config.model.name = "resnet20";
    config.batch_norm.scope = "global";
    config.batch.micro = 6;
    CHECK_THROWS_WITH(forecast_of(config, {8, 1}), Catch::StartsWith("batch.micro = 6: with batch_norm.scope = "
                                                                     "\"global\" a rank's samples (24) must be"));
    CHECK_NOTHROW(forecast_of(config, {8}));
    config.batch_norm.scope = "shard";
    CHECK_NOTHROW(forecast_of(config, {8, 1}));
}

TEST_CASE("the advice on memory names passes that are smaller than what a rank has, or says that there are none") {
    Config config = odd_config(8, "batch");
    const DataFacts facts = data_facts(config);
    constexpr int64_t kEnough = int64_t{1} << 40;
    CHECK_THAT(memory_advice(config, facts, 1, kEnough), Catch::StartsWith("batch.micro = 12 would fit"));
    CHECK_THAT(memory_advice(config, facts, 4, kEnough), Catch::StartsWith("batch.micro = 3 would fit"));
    CHECK_THAT(memory_advice(config, facts, 8, kEnough), Catch::StartsWith("one shard of 3 samples alone takes"));
    config.batch.micro = 6;
    CHECK_THAT(memory_advice(config, facts, 2, kEnough), Catch::StartsWith("batch.micro = 3 would fit"));
    CHECK_THAT(memory_advice(config, facts, 4, 1), Catch::StartsWith("one shard of 3 samples alone takes"));
}

TEST_CASE("with batch norm over the global batch the advice names no passes, as training refuses them") {
    Config config = odd_config(8, "batch");
    config.model.name = "resnet20";
    const DataFacts facts = data_facts(config);
    constexpr int64_t kEnough = int64_t{1} << 40;
    CHECK_THAT(memory_advice(config, facts, 1, kEnough), Catch::StartsWith("batch.micro = 12 would fit"));
    config.batch_norm.scope = "global";
    for (const int64_t micro : {0, 6}) {
        config.batch.micro = micro;
        CHECK_THAT(memory_advice(config, facts, 2, kEnough),
                   Catch::StartsWith("with batch_norm.scope = \"global\" a rank's 12 samples are in memory at once") &&
                       Catch::Contains("use more ranks") && !Catch::Contains("would fit"));
    }
    config.model.name = "mlp";  // which has no batch norm
    config.batch.micro = 0;
    CHECK_THAT(memory_advice(config, facts, 1, kEnough), Catch::StartsWith("batch.micro = 12 would fit"));
}

TEST_CASE("the advice on memory counts what cuBLAS takes for itself, where it is used") {
    Config config = odd_config(8, "batch");
    const DataFacts facts = data_facts(config);
    CHECK_THAT(memory_advice(config, facts, 8, 1), Catch::Contains("KiB"));
    config.device.arithmetic = "vendor";
    CHECK_THAT(memory_advice(config, facts, 8, 1), Catch::Contains("takes about 32 MiB"));
}
