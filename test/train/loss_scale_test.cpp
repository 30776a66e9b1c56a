// Loss scaling is arithmetic like any other: where nothing overflows a power of two changes no bit; where something
// does, all ranks leave the same update out, a checkpoint goes on with the same scale, and only what is not finite by
// itself ends the run.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/log.hpp"
#include "io/temp_folder.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Job job_of_scales() {
    Job job;
    job.samples = 203;
    job.batch = 50;
    job.steps = 12;
    job.optimizer = "adam";
    job.clip_norm = 1;
    return job;
}

Outcome train_scaled(const Config& config, int world, const std::optional<LossScaleRules>& rules,
                     const std::string& out = "", const std::string& resume_from = "") {
    set_log(LogLevel::kQuiet, false);
    TrainOptions options = resume_from.empty() ? TrainOptions() : resumed_from(resume_from);
    options.loss_scale = rules;
    options.out = out;
    return outcome_on(config, open_data(config), world, options);
}

/// Pixels so large that gradients times 2^24 are beyond fp32, and gradients times some less are not.
Config overflowing_config() {
    Config config = config_of(job_of_scales()).config;
    config.data.std = {1e-32};
    config.log.every = 1;
    return config;
}

std::vector<nlohmann::json> steps_of(const std::string& metrics) {
    std::vector<nlohmann::json> steps;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
        auto event = nlohmann::json::parse(line);
        if (event.at("event") == "step") steps.push_back(std::move(event));
    }
    return steps;
}

std::string failure_of(const std::function<void()>& what, ErrorKind kind) {
    try {
        what();
    } catch (const Error& e) {
        CHECK(e.kind() == kind);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("where nothing overflows, no power of two changes a bit of the weights") {
    for (const char* model : {"mlp", "lenet"}) {
        Job job = job_of_scales();
        job.model = model;
        Config config = config_of(job).config;
        for (const char* op : {"average", "sum"}) {
            config.reduce.op = op;
            config.optimizer.l2 = 0.01;
            const std::string expected = train_scaled(config, 1, std::nullopt).sha256;
            for (const float scale : {1.0F, 2.0F, 1024.0F, 65536.0F, 16777216.0F}) {
                CHECK(train_scaled(config, scale == 1024 ? 3 : 1, LossScaleRules{scale, 5}).sha256 == expected);
            }
        }
    }
}

TEST_CASE("an overflow leaves the update out and halves the scale, alike at every number of ranks") {
    const Config config = overflowing_config();
    const LossScaleRules rules{16777216, 3};
    const Outcome alone = train_scaled(config, 1, rules);
    CHECK(train_scaled(config, 2, rules) == alone);
    CHECK(train_scaled(config, 3, rules) == alone);
    float scale = 16777216;
    int64_t good = 0, skipped = 0, doubled = 0;
    const std::vector<nlohmann::json> steps = steps_of(alone.metrics);
    REQUIRE(steps.size() == 12);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].at("step") == i + 1);  // a skipped update counts as a step: its batch is used
        CHECK(steps[i].at("loss_scale") == scale);
        CHECK(steps[i].contains("grad_norm") != steps[i].at("skipped"));
        if (steps[i].at("skipped")) {
            scale /= 2;
            good = 0;
            ++skipped;
        } else if (++good == 3) {
            scale *= 2;
            good = 0;
            ++doubled;
        }
    }
    CHECK(skipped > 0);
    CHECK(doubled > 0);
}

TEST_CASE("a checkpoint goes on with the scale it was written at") {
    const TempFolder folder;
    Config config = overflowing_config();
    const LossScaleRules rules{16777216, 3};
    const Outcome expected = train_scaled(config, 1, rules);
    config.checkpoint.every_steps = 1;
    config.checkpoint.keep = 20;
    train_scaled(config, 2, rules, folder / "run");
    for (const char* step : {"2", "5", "9"}) {
        const std::string from = folder / (std::string("run/checkpoints/step-0000000") + step);
        CHECK(train_scaled(config, 3, rules, "", from).sha256 == expected.sha256);
    }
}

TEST_CASE("at a scale of 1, or with a loss that is not finite, the run ends as without scaling") {
    Config config = overflowing_config();
    config.data.std = {1e-38};  // infinite at any scale
    const auto message = [&](const std::optional<LossScaleRules>& rules) {
        return failure_of([&] { train_scaled(config, 2, rules); }, ErrorKind::kNonFinite);
    };
    const std::string expected = message(std::nullopt);
    CHECK_THAT(expected, Catch::Contains("step 1 "));
    CHECK(message(LossScaleRules{1, 3}) == expected);
    CHECK(message(LossScaleRules{65536, 3}) == expected);  // the loss is not finite: no scale would help
}

TEST_CASE("only powers of two from 1 to 2^24 are scales") {
    for (const float scale : {0.5F, 3.0F, 33554432.0F, 0.0F, -2.0F}) {
        CHECK_THROWS_AS(LossScale(LossScaleRules{scale, 3}), Error);
    }
}
