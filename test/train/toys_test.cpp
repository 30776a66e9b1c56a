// Toys whose outcome can be worked out by hand: y = 2x, prediction w x, loss = mean of ½ (w x - y)², w = 0, sgd, lr
// 0.1, one step, data in order. They go the way of every number: shard plan, shard sums, reducer, update.
#include <catch2/catch.hpp>

#include "data/shard_plan.hpp"
#include "train/point.hpp"
#include "train/toy_run.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Job short_job(int64_t samples, int64_t batch, int64_t steps) {
    Job job;
    job.samples = samples;
    job.batch = batch;
    job.steps = steps;
    return job;
}

int64_t lines_with(const std::string& metrics, const std::string& text) {
    int64_t count = 0;
    for (std::size_t at = metrics.find(text); at != std::string::npos; at = metrics.find(text, at + 1)) ++count;
    return count;
}

}  // namespace

TEST_CASE("four samples on two ranks: w = 1.5") {
    // gradient = mean of -2 x² = -2 (1 + 4 + 9 + 16) / 4 = -15, w = 0.1 * 15
    const ToyResult result = toy(4, 2);
    REQUIRE(result.gradient == -15.0F);
    REQUIRE(result.weight == 1.5F);
}

TEST_CASE("five samples on two ranks: gradient -22 and w = 2.2, where a mean of means gives 1.917 or 2.517") {
    // -2 (1 + 4 + 9 + 16 + 25) / 5 = -22
    const ToyResult result = toy(5, 2);
    REQUIRE(result.gradient == -22.0F);
    REQUIRE(result.weight == 2.2F);
    // The classic bug, with parts of 2 + 3 and of 3 + 2 samples: ((-2 - 8) / 2 + (-18 - 32 - 50) / 3) / 2 = -19.17 and
    // ((-2 - 8 - 18) / 3 + (-32 - 50) / 2) / 2 = -25.17.
    const float two_three = ((-2.0F - 8.0F) / 2 + (-18.0F - 32.0F - 50.0F) / 3) / 2;
    const float three_two = ((-2.0F - 8.0F - 18.0F) / 3 + (-32.0F - 50.0F) / 2) / 2;
    REQUIRE(two_three == Approx(-19.17).margin(0.005));
    REQUIRE(three_two == Approx(-25.17).margin(0.005));
    REQUIRE(result.gradient != two_three);
    REQUIRE(result.gradient != three_two);
}

TEST_CASE("five samples give one result at every world size") {
    for (const int world : {1, 3, 4, 5, 7}) REQUIRE(toy(5, world).weight == 2.2F);
}

TEST_CASE("three samples on seven ranks train") {
    const Outcome alone = run(short_job(3, 4, 5), {});
    REQUIRE(run(short_job(3, 4, 5), {7}) == alone);
}

TEST_CASE("858 samples in batches of 32 on four ranks: 27 steps an epoch, the last of 26, and no hang") {
    const ShardPlan plan(858, 32, 8, Layout::kBatch, LastBatch::kKeep);
    REQUIRE(plan.steps_per_epoch() == 27);
    REQUIRE(plan.batch_size(26) == 26);
    const Outcome outcome = run(short_job(858, 32, 27), {4});
    REQUIRE(lines_with(outcome.metrics, R"("samples":858)") == 1);
    REQUIRE(outcome == run(short_job(858, 32, 27), {1}));
}

TEST_CASE("100 samples in batches of 20: five steps an epoch at 1, 2, 4 and 5 ranks") {
    const Outcome alone = run(short_job(100, 20, 5), {1});
    REQUIRE(lines_with(alone.metrics, R"("samples":100,)") == 1);
    for (const int world : {2, 4, 5}) REQUIRE(run(short_job(100, 20, 5), {world}) == alone);
}
