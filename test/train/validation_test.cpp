// data.validation in a run: evaluation while training is of the samples held out, that of the test data follows after
// the last step only, and none of it depends on the number of ranks.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "train/legs.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Job held_out_job() {
    Job job;
    job.samples = 211;
    job.batch = 32;
    job.steps = 13;
    job.validation = 0.1;  // 21; 190 are left: 6 steps an epoch
    return job;
}

/// "validation 6" for every evaluation, with its step.
std::vector<std::string> evaluations_of(const std::string& metrics) {
    std::vector<std::string> found;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event["event"] != "eval") continue;
        const auto split = event["split"].get<std::string>();
        CHECK(event["count"] == (split == "test" ? 70 : 21));
        found.push_back(split + " " + std::to_string(event["step"].get<int64_t>()));
    }
    return found;
}

}  // namespace

TEST_CASE("held-out samples are evaluated while training, the test data once, at the end") {
    TemporaryFolder folder;
    run_leg(held_out_job(), folder / "run", {1});
    const std::string metrics = without_wall(text_of(folder / "run/metrics.jsonl"));
    CHECK(evaluations_of(metrics) ==
          std::vector<std::string>{"validation 6", "validation 12", "validation 13", "test 13"});
    // 12 updates are two epochs of 190.
    CHECK(metrics.find(R"({"event":"step","step":12,"epoch":1,"samples":380,)") != std::string::npos);
    for (const int world : {2, 3, 4, 8}) {
        const std::string out = folder / std::to_string(world);
        REQUIRE(run_leg(held_out_job(), out, {world, 1, 7}).stopped);
        run_leg(held_out_job(), out, {9 - world});
        CHECK(without_wall(text_of(out + "/metrics.jsonl")) == metrics);
        CHECK(text_of(out + "/model.safetensors") == text_of(folder / "run/model.safetensors"));
    }
}

TEST_CASE("a run that is made longer has no test evaluation where it had ended before") {
    TemporaryFolder folder;
    run_leg(held_out_job(), folder / "whole", {1});
    run_leg(held_out_job(), folder / "legs", {2}, "", [](Config& config) { config.train.steps = 8; });
    run_leg(held_out_job(), folder / "legs", {3});
    CHECK(without_wall(text_of(folder / "legs/metrics.jsonl")) ==
          without_wall(text_of(folder / "whole/metrics.jsonl")));
}

TEST_CASE("without test data the held-out samples alone are evaluated") {
    TemporaryFolder folder;
    run_leg(held_out_job(), folder / "run", {2}, "", [](Config& config) { config.data.test_samples = 0; });
    CHECK(evaluations_of(text_of(folder / "run/metrics.jsonl")) ==
          std::vector<std::string>{"validation 6", "validation 12", "validation 13"});
}

TEST_CASE("another share is refused on resume") {
    TemporaryFolder folder;
    REQUIRE(run_leg(held_out_job(), folder / "run", {1, 1, 5}).stopped);
    CHECK_THROWS_WITH(run_leg(held_out_job(), folder / "run", {1}, "", [](Config& c) { c.data.validation = 0.11; }),
                      Catch::Contains("data.validation was 0.1, now it is 0.11"));
}
