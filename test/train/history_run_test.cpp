// What a run decides by its evaluations: falls of the learning rate on a plateau, an early end, the best checkpoint; at
// any number of ranks, stopped and gone on with.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "train/checkpoint.hpp"
#include "train/legs.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Learning rates of the step events.
std::vector<float> rates_of(const std::string& metrics) {
    std::vector<float> rates;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event["event"] == "step") rates.push_back(event["lr"]);
    }
    return rates;
}

/// The loss cannot change: the weights do not.
Job standing_job() {
    Job job;
    job.samples = 211;  // 7 steps an epoch
    job.batch = 32;
    job.steps = 12;
    job.optimizer = "sgd";
    return job;
}
void stand_still(Config& config) {
    config.optimizer.lr = 1e-30;
    config.log.every = 1;
    config.eval.every_epochs = 0;
    config.eval.every_steps = 2;
}

/// A run that learns, whose loss goes up and down.
Job restless_job() {
    Job job;
    job.samples = 211;
    job.batch = 32;
    job.steps = 24;
    job.validation = 0.2;
    return job;
}
void be_restless(Config& config) {
    config.optimizer.lr = 0.6;
    config.log.every = 1;
    config.eval.every_epochs = 0;
    config.eval.every_steps = 2;
    config.schedule.name = "plateau";
    config.schedule.patience = 1;
    config.schedule.factor = 0.5;
}

}  // namespace

TEST_CASE("on a plateau each fall comes with the step behind its evaluation, down to min_lr") {
    TemporaryFolder folder;
    run_leg(standing_job(), folder / "run", {2}, "", [](Config& config) {
        stand_still(config);
        config.schedule.name = "plateau";
        config.schedule.patience = 1;
        config.schedule.factor = 0.5;
        config.schedule.min_lr = 2e-31;
    });
    // The first evaluation, after step 2, is the best so far; those after 4, 6, 8 and 10 are no better.
    const auto rate = [](double value) { return static_cast<float>(value); };
    CHECK(rates_of(text_of(folder / "run/metrics.jsonl")) ==
          std::vector<float>{rate(1e-30), rate(1e-30), rate(1e-30), rate(1e-30), rate(5e-31), rate(5e-31),
                             rate(2.5e-31), rate(2.5e-31), rate(2e-31), rate(2e-31), rate(2e-31), rate(2e-31)});
}

TEST_CASE("a plateau's rates are the same at any world, stopped and resumed at another, and made longer") {
    TemporaryFolder folder;
    const Job job = restless_job();
    run_leg(job, folder / "whole", {1, 2}, "", be_restless);
    const std::string whole = without_wall(text_of(folder / "whole/metrics.jsonl"));
    const std::vector<float> rates = rates_of(whole);
    REQUIRE(rates.size() == 24);
    REQUIRE(rates.back() < rates.front() / 4);
    for (const int world : {2, 3, 4, 8}) {
        const std::string out = folder / std::to_string(world);
        REQUIRE(run_leg(job, out, {world, 1, 9}, "", be_restless).stopped);
        run_leg(job, out, {9 - world}, "", be_restless);
        CHECK(without_wall(text_of(out + "/metrics.jsonl")) == whole);
        CHECK(text_of(out + "/model.safetensors") == text_of(folder / "whole/model.safetensors"));
    }
    // Ended after 13 steps, where no evaluation was due: that one is not part of a longer run's history.
    const auto shorter = [](Config& config) {
        be_restless(config);
        config.train.steps = 13;
    };
    run_leg(job, folder / "longer", {2}, "", shorter);
    run_leg(job, folder / "longer", {3}, "", be_restless);
    CHECK(without_wall(text_of(folder / "longer/metrics.jsonl")) == whole);
}

TEST_CASE("twin: a resume that forgets the history is found out") {
    TemporaryFolder folder;
    const Job job = restless_job();
    run_leg(job, folder / "whole", {1}, "", be_restless);
    REQUIRE(run_leg(job, folder / "legs", {1, 1, 15}, "", be_restless).stopped);
    Checkpoint spoiled = read_checkpoint(newest_checkpoint(folder / "legs/checkpoints"));
    REQUIRE(spoiled.state.history);
    REQUIRE(spoiled.state.history->drops > 0);
    spoiled.state.history.reset();
    write_checkpoint(folder / "legs/checkpoints", spoiled, 3);
    run_leg(job, folder / "legs", {1}, "", be_restless);
    CHECK(without_wall(text_of(folder / "legs/metrics.jsonl")) !=
          without_wall(text_of(folder / "whole/metrics.jsonl")));
}

TEST_CASE("a run that gets no better ends at that evaluation as if its steps were done, at any world, and once") {
    TemporaryFolder folder;
    const auto stopping = [](Config& config) {
        stand_still(config);
        config.log.every = 5;
        config.train.stop_metric = "loss";
        config.train.stop_patience = 2;
    };
    std::string metrics, model;
    for (const int world : {1, 3, 8}) {
        const std::string out = folder / std::to_string(world);
        const TrainResult result = run_leg(standing_job(), out, {world}, "", stopping);
        CHECK(result.steps == 6);  // evaluations after 2 (the best), 4 and 6
        CHECK_FALSE(result.stopped);
        if (world == 1) {
            metrics = without_wall(text_of(out + "/metrics.jsonl"));
            model = text_of(out + "/model.safetensors");
            CHECK(metrics.find(R"({"event":"step","step":6,)") != std::string::npos);  // the last step has its line
            CHECK(metrics.find(R"({"event":"end","steps":6,"epochs":0,"early":true,)") != std::string::npos);
        }
        CHECK(without_wall(text_of(out + "/metrics.jsonl")) == metrics);
        CHECK(text_of(out + "/model.safetensors") == model);
        CHECK(run_leg(standing_job(), out, {2}, "", stopping).already_done);
    }
    // Stopped on request before, and resumed at another world.
    REQUIRE(run_leg(standing_job(), folder / "legs", {4, 1, 5}, "", stopping).stopped);
    CHECK(run_leg(standing_job(), folder / "legs", {3}, "", stopping).steps == 6);
    CHECK(without_wall(text_of(folder / "legs/metrics.jsonl")) == metrics);
    // Killed between its last checkpoint and its end.
    std::string cut = text_of(folder / "legs/metrics.jsonl");
    cut.resize(cut.find(R"({"event":"end")"));
    std::ofstream(folder / "legs/metrics.jsonl", std::ios::binary) << cut;
    std::filesystem::remove(folder / "legs/model.safetensors");
    CHECK(run_leg(standing_job(), folder / "legs", {2}, "", stopping).steps == 6);
    CHECK(without_wall(text_of(folder / "legs/metrics.jsonl")) == metrics);
    CHECK(text_of(folder / "legs/model.safetensors") == model);
    // Without any checkpoint left its end event says that it is done.
    std::filesystem::remove_all(folder / "legs/checkpoints");
    CHECK(run_leg(standing_job(), folder / "legs", {2}, "", stopping).already_done);
}

TEST_CASE("checkpoint.best saves what is better than all before it, and `keep` never takes it away") {
    TemporaryFolder folder;
    const auto best = [](Config& config) {
        be_restless(config);
        config.schedule.name = "constant";
        config.optimizer.lr = 0.9;
        config.checkpoint.best = "accuracy";
        config.checkpoint.keep = 1;
        config.checkpoint.every_steps = 6;
    };
    run_leg(restless_job(), folder / "run", {2}, "", best);
    int64_t step = 0;
    double highest = -1;
    std::istringstream lines(text_of(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event["event"] != "eval" || event["split"] != "validation" || event["accuracy"] <= highest) continue;
        highest = event["accuracy"];
        step = event["step"];
    }
    REQUIRE(step > 0);
    REQUIRE(step < 24);  // else `keep` had nothing to spare
    CHECK(text_of(folder / "run/checkpoints/best") == checkpoint_name(step) + "\n");
    CHECK(checkpoint_steps(folder / "run/checkpoints") == std::vector<int64_t>{step, 24});
    // The same at another world, stopped behind the best and resumed.
    REQUIRE(run_leg(restless_job(), folder / "legs", {3, 1, step + 1}, "", best).stopped);
    run_leg(restless_job(), folder / "legs", {1}, "", best);
    CHECK(checkpoint_steps(folder / "legs/checkpoints") == std::vector<int64_t>{step, 24});
    CHECK(text_of(folder / "legs/checkpoints/best") == checkpoint_name(step) + "\n");
    CHECK(read_checkpoint(folder / "legs/checkpoints/" + checkpoint_name(step)).model ==
          read_checkpoint(folder / "run/checkpoints/" + checkpoint_name(step)).model);
}
