#include "train/journeys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <set>

namespace lockstep::test {
namespace {

/// Steps after which the legs but the last stop: different ones, before the end.
std::vector<int64_t> random_stops(std::size_t count, int64_t steps, std::mt19937& random) {
    const auto most = static_cast<std::size_t>(steps - 1);
    std::set<int64_t> stops;
    while (stops.size() < std::min(count, most)) {
        stops.insert(1 + static_cast<int64_t>(random() % static_cast<unsigned>(most)));
    }
    return {stops.begin(), stops.end()};
}

}  // namespace

Voyage::Voyage(const Config& config, const DataSplits& data) : config_(config), data_(data) {
    const TemporaryFolder folder;
    steps_ = run_leg(config, data, folder / "whole", {1}).steps;
    whole_ = files_of(folder / "whole");
}

std::string Voyage::differences_after(const Journey& journey, std::mt19937& random, const RankChange& change) const {
    const TemporaryFolder folder;
    const std::string out = folder / "legs";
    const std::vector<int64_t> stops = random_stops(journey.size() - 1, steps_, random);
    const std::string where = fmt::format(" after {} ranks, stops {}", journey, stops);
    int64_t done = 0;
    for (std::size_t i = 0; i < journey.size(); ++i) {
        Leg leg{journey[i]};
        if (i < stops.size()) {
            leg.stop_after = stops[i] - done;
            leg.asks = static_cast<int>(random() % static_cast<unsigned>(leg.world));
            done = stops[i];
        }
        const TrainResult result = run_leg(config_, data_, out, leg, "", change);
        if (leg.stop_after == 0) break;
        if (!result.stopped || result.steps != done) {
            return fmt::format("ended with step {}, asked to stop after {},{}", result.steps, done, where);
        }
    }
    const std::string names = differences(files_of(out), whole_);
    return names.empty() ? "" : names + where;
}

void check_journeys(const Config& config, const DataSplits& data, const std::vector<Journey>& journeys, unsigned seed,
                    const RankChange& change) {
    std::mt19937 random(seed);
    const Voyage voyage(config, data);
    REQUIRE(!voyage.whole().model.empty());
    REQUIRE(voyage.whole().metrics.find("\"end\"") != std::string::npos);
    for (const Journey& journey : journeys) CHECK(voyage.differences_after(journey, random, change) == "");
}

}  // namespace lockstep::test
