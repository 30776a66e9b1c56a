// The equality matrix of recipes: every optimizer with every schedule, each metric to go by and each way of reading,
// stopped at random steps and gone on with at other numbers of ranks, is the run of one rank that never stopped: the
// same weights, optimizer state, metrics and best checkpoint.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <random>

#include "train/journeys.hpp"
#include "train/pairwise.hpp"
#include "train/recipe.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::vector<Journey> kJourneys{{8, 3, 4, 1}, {1, 8}, {4, 2}, {3, 1, 8}, {2, 4, 3}};

/// Ranks of one job differ in what may differ.
void mixed_ranks(LoadedConfig& own, TrainOptions&, int rank) {
    const std::vector<std::string> isas = isas_here();
    const auto number = static_cast<std::size_t>(rank);
    own.config.device.isa = isas[number % isas.size()];
    own.config.device.threads = 1 + rank % 2;
    own.config.device.input_threads = 1 + rank % 3;
}

/// What shows that the runs had something to go wrong.
struct Seen {
    int early = 0, best_before_end = 0, rows = 0;
    void look_at(const Voyage& voyage) {
        ++rows;
        early += voyage.whole().metrics.find("\"early\":true") != std::string::npos;
        best_before_end += !voyage.whole().best.empty() && voyage.whole().best_model != voyage.whole().model;
    }
};

}  // namespace

TEST_CASE("every optimizer, schedule and metric, stopped and resumed at other worlds, gives one result (pairwise)") {
    std::vector<std::size_t> levels = recipe_levels();
    levels.push_back(kJourneys.size());
    std::mt19937 random(3);
    Seen seen;
    for (Recipe row : covering_rows(levels, 11)) {
        const Journey& journey = kJourneys[row.back()];
        row.pop_back();
        INFO(describe(row));
        const Config config = config_of(row);
        const DataSplits data = open_data(config);
        const Voyage voyage(config, data);
        REQUIRE(!voyage.whole().model.empty());
        CHECK(voyage.differences_after(journey, random, mixed_ranks) == "");
        seen.look_at(voyage);
    }
    CHECK(seen.rows >= 117);
    CHECK(seen.early >= 5);
    CHECK(seen.best_before_end >= 5);
}

TEST_CASE("random recipes, journeys and stops give one result", "[.long]") {
    const auto seed = static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count());
    std::mt19937 random(seed);
    constexpr int kPoints = 1000;
    fmt::print("seed {}, {} points\n", seed, kPoints);
    const std::vector<int> worlds{1, 2, 3, 4, 5, 7, 8};
    for (int i = 0; i < kPoints; ++i) {
        Recipe recipe;
        for (const std::size_t values : recipe_levels()) recipe.push_back(random() % values);
        Journey journey(1 + random() % 4);
        for (int& world : journey) world = worlds[random() % worlds.size()];
        Config config = config_of(recipe);
        config.seed = random() % 1000;
        config.data.samples = 40 + static_cast<int64_t>(random() % 60);
        config.batch.shards = std::vector<int64_t>{1, 3, 5, 8, 12}[random() % 5];
        config.reduce.bucket_kib = random() % 2 == 0 ? 1 : 4096;
        config.reduce.small_kib = random() % 2 == 0 ? 0 : 32;
        INFO("seed " << seed << " point " << i << ": " << describe(recipe));
        const DataSplits data = open_data(config);
        const Voyage voyage(config, data);
        REQUIRE(!voyage.whole().model.empty());
        REQUIRE(voyage.differences_after(journey, random, mixed_ranks) == "");
        if (i % 100 != 99) continue;
        fmt::print("{} points, 0 differing bits\n", i + 1);
        std::fflush(stdout);
    }
}
