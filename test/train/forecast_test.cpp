// What `plan` foretells is what a run does: every index read, every message sent, every learning rate, exactly.
#include "train/forecast.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "train/memory_advice.hpp"
#include "train/traced_run.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<int> kWorlds{1, 2, 3, 4, 5, 8};

Forecast forecast_of(const Config& config, const std::vector<int>& worlds, const std::vector<int64_t>& lr_at = {}) {
    return make_forecast(config, data_facts(config), {worlds, 1 << 20, lr_at});
}

/// Nothing divides anything: 9 steps an epoch of 203 samples, the last of 11.
Config odd_config(int64_t shards, const std::string& layout) {
    Job job;
    job.samples = 203;
    job.batch = 24;
    job.shards = shards;
    job.layout = layout;
    job.steps = 19;
    Config config = config_of(job).config;
    config.data.test_samples = 0;
    config.model.hidden = {9};
    config.reduce.bucket_kib = 2;
    config.reduce.small_kib = 1;
    config.device.threads = 1;
    return config;
}

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

std::map<int64_t, float> rates_in(const std::string& metrics) {
    std::map<int64_t, float> rates;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event.at("event") == "step") rates[event.at("step")] = std::stof(event.at("lr").dump());
    }
    return rates;
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

TEST_CASE("where batch norm has the global batch's statistics, the advice names no passes: training refuses them") {
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

TEST_CASE("learning rates are told where they change, for each schedule, and are those of the run") {
    for (const char* schedule : {"constant", "step", "cosine", "linear", "piecewise", "exponential", "poly"}) {
        for (const double warmup : {0.0, 0.5, 1.3}) {
            CAPTURE(schedule, warmup);
            Job job;
            job.samples = 203;
            job.batch = 24;
            job.steps = 40;
            job.schedule = schedule;
            job.warmup = warmup;
            const Config config = config_of(job).config;
            const Outcome outcome =
                run(job, {2}, {[](LoadedConfig& own, TrainOptions&, int) { own.config.log.every = 1; }});
            const std::map<int64_t, float> real = rates_in(outcome.metrics);
            const Forecast forecast = forecast_of(config, {1}, {7});
            std::map<int64_t, float> foretold;
            for (const LearningRate& rate : forecast.rates) foretold[rate.step] = rate.lr;
            for (const auto& [step, rate] : foretold) CHECK(real.at(step) == rate);
            for (const int64_t step : {int64_t{1}, int64_t{7}, int64_t{40}}) CHECK(foretold.contains(step));
            const Schedule rates(schedule_spec(config, forecast.plan));
            const int64_t warm = rates.warmup_updates();
            if (warm > 0) CHECK(foretold.contains(warm));
            if (rates.piecewise_constant()) {
                // From the told ones alone follows every rate after the warm-up.
                for (int64_t u = std::max<int64_t>(warm, 1); u <= 40; ++u)
                    CHECK(real.at(u) == std::prev(foretold.upper_bound(u))->second);
            } else {
                for (int64_t u = 1; u <= 40; u += 9) CHECK(foretold.contains(u));
            }
        }
    }
}

TEST_CASE("a rate that falls and rises again is told at each change") {
    ScheduleSpec spec;
    spec.name = "piecewise";
    spec.boundaries = {1, 2, 3, 4};
    spec.values = {0.1, 0.2, 0.1, 0.1, 0.3};
    spec.batch = 1;
    spec.samples_per_epoch = spec.steps_per_epoch = 10;
    spec.total_steps = 60;
    const ShardPlan shards(10, 1, 1, Layout::kBatch, LastBatch::kKeep);
    const auto rates = learning_rates(Schedule(spec), {shards, 10, 60, 6}, {});
    CHECK(rates == std::vector<LearningRate>{{1, 0.1F}, {11, 0.2F}, {21, 0.1F}, {41, 0.3F}, {60, 0.3F}});
}

TEST_CASE("a plateau's rates are told as far as they are known, and what they go by") {
    Config config = odd_config(8, "batch");
    config.schedule.name = "plateau";
    config.schedule.metric = "accuracy";
    config.schedule.patience = 3;
    config.data.test_samples = 20;
    const Forecast forecast = forecast_of(config, {1}, {});
    CHECK(forecast.rates.size() == 2);
    CHECK(forecast.rates_note == "times 0.1 after 3 evaluations in a row without a better accuracy, not below 0.0");
    CHECK_THAT(forecast_text(forecast), Catch::Contains("; times 0.1 after 3 evaluations"));
    CHECK_THAT(forecast_json(forecast), Catch::Contains("\"lr_note\":\"times 0.1"));
    config.schedule.metric = "auc";
    CHECK_THROWS_WITH(forecast_of(config, {1}, {}), Catch::Contains("there is no such metric"));
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

TEST_CASE("the rates of a run of billions of steps are told at once") {
    ScheduleSpec spec;
    spec.name = "step";
    spec.every_epochs = 2.5;
    spec.batch = 1;
    spec.samples_per_epoch = spec.steps_per_epoch = 1'000'000'000;
    spec.total_steps = 10'000'000'000;
    const ShardPlan shards(1'000'000'000, 1, 1, Layout::kBatch, LastBatch::kKeep);
    const auto rates = learning_rates(Schedule(spec), {shards, spec.steps_per_epoch, spec.total_steps, 10}, {});
    std::vector<int64_t> steps;
    for (const LearningRate& rate : rates) steps.push_back(rate.step);
    CHECK(steps == std::vector<int64_t>{1, 2'500'000'001, 5'000'000'001, 7'500'000'001, 10'000'000'000});
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
