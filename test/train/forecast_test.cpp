// What `plan` foretells is what a run does: every index read and every message sent, exactly.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "train/forecasts.hpp"
#include "train/traced_run.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<int> kWorlds{1, 2, 3, 4, 5, 8};

struct Told {
    std::vector<int64_t> indices;
    std::vector<TracedStep> steps;
};

/// A whole run of one rank, as plan would tell it step by step.
Told told(const Config& config, int rank, int world) {
    const RunPlan plan = make_run_plan(config, config.data.samples);
    const auto backend = make_cpu_backend({Isa::kScalar, 1});
    const DataFacts facts = data_facts(config);
    const int64_t elements =
        Network(model_spec(config, facts.shape, facts.classes, {}), *backend).parameters().flat_elements();
    const ShardRange local = shards_of_rank(plan.shards.shards(), rank, world);
    Told all;
    for (int64_t u = 1; u <= plan.total_steps; ++u) {
        const std::vector<int64_t> indices = step_indices(config, plan, local, u, INT64_MAX);
        const std::vector<int64_t> sizes = plan.shards.shard_sizes(step_position(u, plan.steps_per_epoch).step);
        const Traffic traffic = canonical_traffic(config, elements, rank, world, sizes);
        all.indices.insert(all.indices.end(), indices.begin(), indices.end());
        all.steps.push_back({static_cast<int64_t>(indices.size()), traffic.bytes, traffic.messages});
    }
    return all;
}

void check_told(const Config& config, int world) {
    const std::vector<TracedRank> traced = traced_run(config, world);
    const WorldForecast forecast = forecast_of(config, {world}).worlds.at(0);
    int64_t most_bytes = 0;
    int64_t most_messages = 0;
    std::vector<int64_t> epoch;
    for (int r = 0; r < world; ++r) {
        CAPTURE(r);
        const TracedRank& rank = traced[static_cast<std::size_t>(r)];
        const Told all = told(config, r, world);
        CHECK(rank.indices == all.indices);
        CHECK(rank.steps == all.steps);
        int64_t bytes = 0;
        for (const TracedStep& step : rank.steps) bytes += step.bytes;
        CHECK(rank.counted_bytes == bytes);

        const RankForecast& first = forecast.ranks.at(static_cast<std::size_t>(r));
        CHECK(first.samples == rank.steps[0].rows);
        CHECK(first.sent->bytes == rank.steps[0].bytes);
        CHECK(first.sent->messages == rank.steps[0].messages);
        const auto end_of_first = rank.indices.begin() + static_cast<std::ptrdiff_t>(rank.steps[0].rows);
        CHECK(first.first_indices.at(0) == std::vector<int64_t>(rank.indices.begin(), end_of_first));
        CHECK(first.memory.activations == rank.arena_bytes);
        CHECK(first.memory.gradients == rank.gradient_sums * (kLead * 4 + first.memory.weights));
        CHECK(first.memory.optimizer == rank.slots * first.memory.weights);
        most_bytes = std::max(most_bytes, rank.steps[0].bytes);
        most_messages = std::max(most_messages, rank.steps[0].messages);
        int64_t rows = 0;  // of the first epoch
        for (int t = 0; t < 9; ++t) rows += rank.steps[static_cast<std::size_t>(t)].rows;
        epoch.insert(epoch.end(), rank.indices.begin(), rank.indices.begin() + static_cast<std::ptrdiff_t>(rows));
    }
    CHECK(forecast.bytes_sent == most_bytes);
    CHECK(forecast.messages == most_messages);
    std::sort(epoch.begin(), epoch.end());
    std::vector<int64_t> each_once(203);
    std::iota(each_once.begin(), each_once.end(), 0);
    CHECK(epoch == each_once);
}

}  // namespace

TEST_CASE("every index read and every byte sent is as told, at every world size, layout and number of shards") {
    for (const int64_t shards : {8, 12, 5}) {
        for (const char* layout : {"batch", "epoch"}) {
            for (const int world : kWorlds) {
                CAPTURE(shards, layout, world);
                check_told(odd_config(shards, layout), world);
            }
        }
    }
}

TEST_CASE("steps that leave shards empty, and small gradients sent whole, are told exactly") {
    Config few = odd_config(8, "batch");
    few.batch.size = 23;  // nine steps again, the last of 19
    few.reduce.small_kib = 1024;
    for (const int world : {2, 8}) check_told(few, world);
    Config empty = odd_config(12, "epoch");
    empty.data.samples = 45;
    empty.batch.size = 5;
    empty.train.steps = 20;
    for (const int world : {2, 3, 4, 8}) {
        CAPTURE(world);
        for (int r = 0; r < world; ++r)
            CHECK(traced_run(empty, world)[static_cast<std::size_t>(r)].steps == told(empty, r, world).steps);
    }
}

TEST_CASE("a convolutional network's messages and arena are as told") {
    Config config = odd_config(8, "batch");
    config.model.name = "lenet";
    for (const int world : {1, 2, 3}) check_told(config, world);
}

TEST_CASE("a run that breaks the rules is found out by what was told") {
    const Config config = odd_config(8, "batch");
    const Told all = told(config, 1, 2);
    const auto seed_plus_rank = traced_run(config, 2, [](Config& own, int rank) { own.seed += rank; });
    CHECK(seed_plus_rank[1].indices != all.indices);
    CHECK(seed_plus_rank[1].steps == all.steps);
    const auto other_layout = traced_run(config, 2, [](Config& own, int) { own.batch.layout = "epoch"; });
    CHECK(other_layout[1].indices != all.indices);
    const auto other_buckets = traced_run(config, 2, [](Config& own, int) {
        own.reduce.bucket_kib = 1;
        own.reduce.small_kib = 0;
    });
    CHECK(other_buckets[1].indices == all.indices);
    CHECK(other_buckets[1].steps != all.steps);
}

TEST_CASE("held-out samples are told, and the steps are those of the rest") {
    Config config = odd_config(8, "batch");
    const int64_t all = config.data.samples;
    config.data.validation = 0.25;
    const Forecast forecast = forecast_of(config, {2}, {});
    CHECK(forecast.data.validation_samples == all / 4);
    CHECK(forecast.plan.shards.samples() == all - all / 4);
    CHECK_THAT(forecast_text(forecast), Catch::Contains(" held out for validation; "));
}

TEST_CASE("a step that the run does not have is refused") {
    const Config config = odd_config(8, "batch");
    CHECK_THROWS_WITH(forecast_of(config, {1}, {20}), "--lr-at 20: the run has steps 1 to 19; ask for one of them");
    CHECK_THROWS_AS(forecast_of(config, {1}, {0}), Error);
}

TEST_CASE("free worlds are powers of two up to V, idle ranks are counted, and a ring is matched") {
    const Forecast forecast = forecast_of(odd_config(8, "batch"), {1, 2, 3, 8, 64});
    std::vector<bool> free;
    for (const WorldForecast& world : forecast.worlds) free.push_back(world.free);
    CHECK(free == std::vector<bool>{true, true, false, true, false});
    const WorldForecast& idle = forecast.worlds.back();
    CHECK(idle.idle == 56);
    CHECK(idle.imbalance == 8.0);
    CHECK_FALSE(idle.ranks[0].shift_ratio.has_value());
    CHECK(idle.ranks[0].shards == ShardRange{0, 0});
    CHECK(idle.ranks[7].shards == ShardRange{0, 1});
    CHECK(forecast.worlds[2].ranks[1].shards == ShardRange{2, 5});
    CHECK(forecast.worlds[2].ranks[1].shift_ratio == 0.25);
    CHECK(forecast.free_worlds == std::vector<int>{1, 2, 4, 8});
    Config small = odd_config(8, "batch");
    small.batch.size = 4;  // in a world of 8, four ranks have no sample
    CHECK(forecast_of(small, {8}).free_worlds == std::vector<int>{1, 2, 4});
    CHECK_FALSE(forecast_of(small, {8}).worlds[0].free);
    CHECK_FALSE(forecast_of(odd_config(12, "batch"), {4}).worlds[0].free);
    CHECK(worlds_to_show(8) == std::vector<int>{1, 2, 4, 8});
    CHECK(worlds_to_show(12) == std::vector<int>{1, 2, 4, 8, 12});
    CHECK(worlds_to_show(1) == std::vector<int>{1});
}

TEST_CASE("native: the transport decides what is sent") {
    Config config = odd_config(8, "batch");
    config.reduce.algorithm = "native";
    const Forecast forecast = forecast_of(config, {2});
    CHECK_FALSE(forecast.worlds[0].bytes_sent.has_value());
    const auto json = nlohmann::json::parse(forecast_json(forecast));
    CHECK(json.at("worlds").at(0).at("bytes_sent_per_step").is_null());
    CHECK(json.at("worlds").at(0).at("ranks").at(1).at("messages").is_null());
    CHECK(forecast_text(forecast).find("the transport decides") != std::string::npos);
}

TEST_CASE("a table of 64 ranks stays a few lines, and JSON has every rank") {
    const Forecast forecast = forecast_of(odd_config(8, "batch"), {64});
    const std::string text = forecast_text(forecast);
    CHECK(std::count(text.begin(), text.end(), '\n') < 60);
    CHECK(nlohmann::json::parse(forecast_json(forecast)).at("worlds").at(0).at("ranks").size() == 64);
}
