// The plan of messages, run on symbols: whatever V, W and the empty shards are, every rank ends with the canonical sum.
#include <catch2/catch.hpp>
#include <random>

#include "comm/plan_simulation.hpp"
#include "core/error.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<int64_t> random_sizes(int shards, double filled, std::mt19937& random) {
    std::vector<int64_t> sizes(static_cast<size_t>(shards));
    std::bernoulli_distribution has_samples(filled);
    for (int64_t& size : sizes) size = has_samples(random) ? 1 + static_cast<int64_t>(random() % 5) : 0;
    sizes[random() % sizes.size()] = 1;
    return sizes;
}

// "" if right for this world; also checks that what is counted is what is sent.
std::string fault_of(int shards, int world, std::span<const int64_t> sizes, int64_t gradients, int64_t lead,
                     int64_t small_bytes) {
    const auto plans = plans_of_world(shards, world, sizes, lead + gradients, lead, small_bytes);
    for (const ReducePlan& plan : plans) {
        int64_t bytes = 0;
        int messages = 0;
        for (const ReduceStep& step : plan.steps) {
            if (step.kind != ReduceStep::Kind::kSend) continue;
            bytes += 4 * (step.end - std::min(step.end, std::max(step.begin, lead)));
            messages += 1;
            if (step.begin < lead && (step.begin != 0 || step.end < lead)) return "the lead is cut";
            if (step.begin < lead && step.end == lead && gradients > 0 && plan.roots > 0) {
                return "the lead travels without element 0";
            }
        }
        if (bytes != plan.bytes_sent || messages != plan.messages) return "counted wrongly";
        if (plan.method != plans.front().method) return "ranks differ in method";
        if (plan.buffers != std::max(plan.roots, 1) + static_cast<int>(plan.scratch.size()))
            return "buffers counted wrongly";
    }
    return PlanSimulation(shards, sizes, lead + gradients, plans, lead).run();
}

}  // namespace

TEST_CASE("every rank ends with the canonical sum, for all small worlds") {
    const unsigned seed = 20260731;
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<int> all_shards{32, 64};
    for (int v = 1; v <= 17; ++v) all_shards.push_back(v);
    for (const int shards : all_shards) {
        for (int world = 1; world <= 9; ++world) {
            for (const double filled : {1.0, 0.8, 0.3}) {
                for (const int64_t gradients : {0, 1, 15, 16, 17, 150, 1000}) {
                    if (gradients == 1000 && filled == 0.8) continue;
                    const auto sizes = random_sizes(shards, filled, random);
                    const int64_t lead = random() % 2 == 0 ? 16 : 0;
                    const int64_t small_bytes = random() % 2 == 0 ? 0 : 32768;
                    const std::string fault = fault_of(shards, world, sizes, gradients, lead, small_bytes);
                    if (fault.empty()) continue;  // one assertion for each world would cost more than the simulation
                    INFO("V " << shards << " W " << world << " gradients " << gradients << " lead " << lead
                              << " filled " << filled << " small " << small_bytes);
                    REQUIRE(fault == "");
                }
            }
        }
    }
}

TEST_CASE("a broken plan is seen by the same simulation") {
    const std::vector<int64_t> sizes(8, 1);
    const auto fault_after = [&](auto break_plan) {
        auto plans = plans_of_world(8, 4, sizes, 64, 0, 0);
        break_plan(plans);
        return PlanSimulation(8, sizes, 64, plans).run();
    };
    CHECK(fault_after([](auto&) {}) == "");
    const auto first_add = [](ReducePlan& plan) -> ReduceStep& {
        return *std::find_if(plan.steps.begin(), plan.steps.end(),
                             [](auto& s) { return s.kind == ReduceStep::Kind::kAdd; });
    };
    CHECK(fault_after([&](auto& plans) { std::swap(first_add(plans[1]).from, first_add(plans[1]).right); }) != "");
    CHECK(fault_after([&](auto& plans) { first_add(plans[0]).end -= 1; }) != "");
    CHECK(fault_after([&](auto& plans) { plans[2].steps.pop_back(); }) != "");
    CHECK(fault_after([&](auto& plans) { plans[3].steps.front().begin += 1; }) != "");
}

TEST_CASE("a halving whose partners come farthest first is not the canonical tree") {
    // The usual Rabenseifner order: ranks r and r ^ 2 first. Its sum of four is (0+2)+(1+3).
    const std::vector<int64_t> sizes(4, 1);
    auto plans = plans_of_world(4, 4, sizes, 64, 0, 0);
    const auto renamed = [](int rank) { return rank == 1 ? 2 : rank == 2 ? 1 : rank; };
    auto farthest = plans;
    for (int r = 0; r < 4; ++r) {
        farthest[static_cast<size_t>(r)] = plans[static_cast<size_t>(renamed(r))];
        for (ReduceStep& step : farthest[static_cast<size_t>(r)].steps) {
            if (step.peer >= 0) step.peer = renamed(step.peer);
        }
    }
    CHECK(PlanSimulation(4, sizes, 64, plans).run() == "");
    CHECK(PlanSimulation(4, sizes, 64, farthest).run() == "rank 0 has another sum in element 0");
}

TEST_CASE("a step without any sample is refused") {
    const std::vector<int64_t> sizes(4, 0);
    CHECK_THROWS_AS(make_reduce_plan(4, 0, 2, sizes, 64, 0, 0), Error);
}
