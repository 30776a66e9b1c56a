// The learning rates that `plan` foretells are those of the run, told where they change.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "train/forecasts.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

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

TEST_CASE("the optimizer is told with what it goes by, and without what it does not use") {
    const auto told = [](const std::function<void(Config&)>& change) {
        Config config;
        change(config);
        return optimizer_text(config);
    };
    CHECK(told([](Config&) {}) == "momentum, momentum 0.9");
    CHECK(told([](Config& c) { c.optimizer.name = "sgd"; }) == "sgd");
    CHECK(told([](Config& c) {
              c.optimizer.name = "adamw";
              c.optimizer.weight_decay = 0.01;
              c.optimizer.decay = "weights";
              c.optimizer.clip_norm = 1;
          }) == "adamw, beta1 0.9, beta2 0.999, epsilon 1e-08, weight_decay 0.01 of weights alone, clip_norm 1.0");
    CHECK(told([](Config& c) {
              c.optimizer.name = "rmsprop";
              c.optimizer.epsilon_inside = true;
              c.optimizer.l2 = 0.5;
              c.reduce.op = "sum";
          }) == "rmsprop, rho 0.9, epsilon 1e-08 inside the root, l2 0.5, of the sum over the batch (reduce.op)");
    CHECK(told([](Config& c) { c.optimizer.name = "lars"; }) == "lars, momentum 0.9, trust 0.001, epsilon 1e-08");
}
