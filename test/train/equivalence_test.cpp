// Every number of docs/equivalence.md, worked out by Lockstep's own parts or, for what others do, by their rule. Each
// case then looks for its numbers on the page.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "data/epoch_order.hpp"
#include "train/forecast.hpp"
#include "train/point.hpp"
#include "train/toy_run.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The page as one line, so that no break of a line hides a sentence.
std::string page() {
    std::ifstream file(LOCKSTEP_PAGE);
    std::string text;
    for (std::string word; file >> word;) text += word + " ";
    REQUIRE(text.size() > 1000);
    return text;
}

void page_says(const std::string& words) {
    CAPTURE(words);
    CHECK(page().find(words) != std::string::npos);
}

/// As the page writes numbers: a real minus.
std::string number(double value, int decimals = -1) {
    const std::string digits = decimals < 0 ? fmt::format("{}", static_cast<float>(std::fabs(value)))
                                            : fmt::format("{:.{}f}", std::fabs(value), decimals);
    return (value < 0 ? "−" : "") + digits;
}

std::vector<float> updated(const OptimizerSpec& spec, std::vector<float> weights, const std::vector<float>& gradient,
                           int times) {
    const auto backend = make_cpu_backend({Isa::kAuto, 1});
    const auto count = static_cast<int64_t>(weights.size());
    Update update(spec, {{0, count, true}}, count, *backend);
    for (int u = 1; u <= times; ++u) update.apply(gradient.data(), 0, 1, u, 0.1F, 0.1, weights.data());
    return weights;
}

}  // namespace

TEST_CASE("example 1: w = 1.5, and 3 where means of workers are added") {
    const ToyResult result = toy(4, 2);
    const double first = -2.0 * (1 + 4) / 2;
    const double second = -2.0 * (9 + 16) / 2;
    page_says(fmt::format("is {}; divided once by 4 it is {}, and w = {}.", number(4.0 * result.gradient),
                          number(result.gradient), number(result.weight)));
    page_says(fmt::format("{} and {}, would give {} and w = {}.", number(first), number(second), number(first + second),
                          number(-0.1 * (first + second))));
}

TEST_CASE("example 2: -22 and 2.2 at every world, and what means of means give") {
    for (const int world : {1, 2, 3, 4, 5, 7}) {
        CHECK(toy(5, world).gradient == -22.0F);
        CHECK(toy(5, world).weight == 2.2F);
    }
    page_says("−110 / 5 = −22 and w = 2.2, on 1, 2, 3, 4, 5 or 7 ranks.");
    const double two_three = (-2.0 * (1 + 4) / 2 - 2.0 * (9 + 16 + 25) / 3) / 2;
    const double three_two = (-2.0 * (1 + 4 + 9) / 3 - 2.0 * (16 + 25) / 2) / 2;
    page_says(fmt::format("is {} (w = {}) for parts of 2 and 3 samples, and {} (w = {}) for parts of 3 and 2",
                          number(two_three, 2), number(-0.1 * two_three, 3), number(three_two, 2),
                          number(-0.1 * three_two, 3)));
}

TEST_CASE("example 3: clipping 3, 4 gives 0.6, 0.8") {
    OptimizerSpec spec;
    spec.name = "sgd";
    spec.clip_norm = 1;
    // One step from 0 with rate 0.1 shows a tenth of the clipped gradient.
    const std::vector<float> weights = updated(spec, {0, 0}, {1.5F, 2.0F}, 1);
    CHECK(std::lround(-1e5 * weights[0]) == 6000);
    CHECK(std::lround(-1e5 * weights[1]) == 8000);
    CHECK(std::hypot(1.5, 2.0) == 2.5);
    page_says("their mean (1.5, 2) has norm 2.5 and becomes (0.6, 0.8).");
    // Each worker: (3, 0) / 3 and (0, 4) / 4, then the mean.
    page_says("it would be (0.5, 0.5).");
}

TEST_CASE("examples 4 and 5: an optimizer that is stepped once for every worker moves further") {
    OptimizerSpec adam;
    adam.name = "adam";
    CHECK(updated(adam, {1}, {1}, 1)[0] == Approx(0.9).epsilon(1e-6));
    CHECK(updated(adam, {1}, {1}, 2)[0] == Approx(0.8).epsilon(1e-6));
    page_says("one step gives w = 0.9. Stepped once for each of two workers, 0.8.");
    OptimizerSpec momentum;
    momentum.name = "momentum";
    CHECK(updated(momentum, {0}, {1}, 1)[0] == Approx(-0.1).epsilon(1e-6));
    CHECK(updated(momentum, {0}, {1}, 2)[0] == Approx(-0.29).epsilon(1e-6));
    page_says("one step gives w = −0.1. Stepped once for each of two workers, −0.29.");
}

TEST_CASE("example 6: ten samples in batches of four are steps of 4, 4 and 2") {
    const ShardPlan plan(10, 4, 8, Layout::kBatch, LastBatch::kKeep);
    REQUIRE(plan.steps_per_epoch() == 3);
    CHECK(plan.batch_size(0) == 4);
    CHECK(plan.batch_size(1) == 4);
    CHECK(plan.batch_size(2) == 2);
    page_says("steps of 4, 4 and 2, and the last divides by 2.");
}

TEST_CASE("six workers that each read 650,000 samples take 30,474 steps in place of 5,079") {
    const ShardPlan plan(650000, 128, 8, Layout::kBatch, LastBatch::kKeep);
    CHECK(plan.steps_per_epoch() == 5079);
    CHECK(6 * plan.steps_per_epoch() == 30474);
    page_says("650,000 samples, batch 128, 6 workers: 30,474 steps an epoch in place of 5,079");
}

TEST_CASE("seed plus rank: two workers, each with half of an order of its own, read some samples twice") {
    std::multiset<int64_t> read;
    for (const int rank : {0, 1}) {
        const EpochOrder own(static_cast<uint64_t>(1 + rank), 0, 1000);
        for (int64_t position = 500 * rank; position < 500 * (rank + 1); ++position) read.insert(own.index(position));
    }
    int twice = 0;
    int never = 0;
    for (int64_t index = 0; index < 1000; ++index) {
        twice += read.count(index) == 2;
        never += read.count(index) == 0;
    }
    page_says(
        fmt::format("with 1,000 samples and 2 workers, {} are read twice in an epoch and {} never", twice, never));
}

TEST_CASE("a shift ratio of 0 makes both workers read the first half of every batch") {
    Config config;
    config.data.format = "synthetic";
    config.data.samples = 10;
    config.data.shuffle = "none";
    config.batch.size = 4;
    config.train.epochs = 1;
    const RunPlan plan = make_run_plan(config, 10);
    std::vector<int64_t> read;  // what a worker at shift ratio 0 reads, whatever its rank
    for (int64_t u = 1; u <= 3; ++u) {
        for (const int64_t index : step_indices(config, plan, shards_of_rank(8, 0, 2), u, 4)) read.push_back(index);
    }
    CHECK(read == std::vector<int64_t>{0, 1, 4, 5, 8});
    page_says("both read 0 1 4 5 8");
}

TEST_CASE("the variance of 1, 2, 3, 4 is 1.25, and 0.25 in each half") {
    const auto variance = [](double a, double b) {
        const double mean = (a + b) / 2;
        return ((a - mean) * (a - mean) + (b - mean) * (b - mean)) / 2;
    };
    CHECK(variance(1, 2) == 0.25);
    CHECK(variance(3, 4) == 0.25);
    double whole = 0;
    for (const double x : {1.0, 2.0, 3.0, 4.0}) whole += (x - 2.5) * (x - 2.5) / 4;
    CHECK(whole == 1.25);
    page_says("1, 2, 3, 4 has variance 1.25, its halves 0.25");
}
