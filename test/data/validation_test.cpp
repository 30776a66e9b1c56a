// The held-out part of the training data: which samples it is, that it shares none with the rest, and what is counted.
#include "data/validation.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "config/config.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

Config synthetic(int64_t samples, double share, int64_t seed = 1) {
    Config config;
    config.seed = seed;
    config.data.format = "synthetic";
    config.data.samples = samples;
    config.data.shape = {2, 2, 1};
    config.data.validation = share;
    return config;
}

std::vector<float> pixels_of(const Dataset& data, int64_t index) {
    std::vector<float> pixels(static_cast<std::size_t>(data.shape().elements()));
    data.read(index, pixels);
    return pixels;
}

}  // namespace

TEST_CASE("the share held out is rounded down") {
    CHECK(held_out_samples(0.1, 1003) == 100);
    CHECK(held_out_samples(0.5, 3) == 1);
    CHECK(held_out_samples(0.0, 3) == 0);
    CHECK(held_out_samples(0.999, 1000) == 999);
}

TEST_CASE("who is held out follows from seed and number of samples: distinct, ascending, spread over the data") {
    const std::vector<int64_t> held = held_out_indices(7, 10'000, 1'000);
    CHECK(std::is_sorted(held.begin(), held.end()));
    CHECK(std::set(held.begin(), held.end()).size() == 1'000);
    CHECK((held.front() >= 0 && held.back() < 10'000));
    CHECK(held == held_out_indices(7, 10'000, 1'000));
    CHECK(held != held_out_indices(8, 10'000, 1'000));
    CHECK(held_out_indices(7, 10'001, 1'000) != held);
    // A larger share holds out more, none less.
    const std::vector<int64_t> more = held_out_indices(7, 10'000, 1'500);
    CHECK(std::includes(more.begin(), more.end(), held.begin(), held.end()));
    // Of 100 each tenth of the data should have some: 5 deviations of a hypergeometric count are 45.
    for (int64_t tenth = 0; tenth < 10; ++tenth) {
        const auto in_it = std::count_if(held.begin(), held.end(), [&](int64_t i) { return i / 1'000 == tenth; });
        CHECK((in_it > 55 && in_it < 145));
    }
}

TEST_CASE("both parts together are the data, each in its order, and share nothing") {
    for (const auto& [samples, share] : {std::pair<int64_t, double>{203, 0.2}, {10, 0.99}, {1003, 0.001}, {5, 0.5}}) {
        const DataSplits whole = open_data(synthetic(samples, 0));
        const DataSplits parts = open_data(synthetic(samples, share));
        REQUIRE(parts.validation != nullptr);
        CHECK(whole.validation == nullptr);
        const std::vector<int64_t> held = held_out_indices(1, samples, held_out_samples(share, samples));
        REQUIRE(parts.validation->size() == static_cast<int64_t>(held.size()));
        REQUIRE(parts.train->size() == samples - parts.validation->size());
        int64_t rest = 0, out = 0;
        for (int64_t i = 0; i < samples; ++i) {
            const bool is_held = std::binary_search(held.begin(), held.end(), i);
            const Dataset& part = is_held ? *parts.validation : *parts.train;
            int64_t& at = is_held ? out : rest;
            REQUIRE(part.label(at) == whole.train->label(i));
            REQUIRE(pixels_of(part, at) == pixels_of(*whole.train, i));
            ++at;
        }
        CHECK(parts.test->fingerprint() == whole.test->fingerprint());
        const std::set<std::string> fingerprints{whole.train->fingerprint(), parts.train->fingerprint(),
                                                 parts.validation->fingerprint()};
        CHECK(fingerprints.size() == 3);
        CHECK(parts.train->fingerprint() != open_data(synthetic(samples, share, 2)).train->fingerprint());
    }
}

TEST_CASE("the facts count what is left and what is held out") {
    const DataFacts facts = data_facts(synthetic(1003, 0.1));
    CHECK(facts.samples == 903);
    CHECK(facts.validation_samples == 100);
    CHECK(data_facts(synthetic(1003, 0)).samples == 1003);
}

TEST_CASE("a share that holds out nothing is refused") {
    CHECK_THROWS_WITH(open_data(synthetic(9, 0.1)), Catch::Contains("data.validation = 0.1 of 9 training samples"));
    CHECK_THROWS_AS(data_facts(synthetic(9, 0.1)), Error);
}

}  // namespace lockstep
