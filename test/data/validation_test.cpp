// The held-out part of the training data: which samples it is, that it shares none with the rest, and what is counted.
#include "data/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "config/config.hpp"
#include "core/error.hpp"
#include "io/temp_folder.hpp"

namespace lockstep {
namespace {

/// A table of 40 rows, without those that are asked to be left out.
std::string table(const std::vector<int64_t>& left_out, bool rare) {
    std::string text = "x,color,y\n";
    for (int64_t i = 0; i < 40; ++i) {
        if (std::binary_search(left_out.begin(), left_out.end(), i)) continue;
        const bool odd = rare && i == 17;
        text += fmt::format("{},{},{}\n", i * i, odd ? "aqua" : i % 3 == 0 ? "red" : "blue", i % 2 == 0 ? "no" : "yes");
    }
    return text;
}

Config table_config(const std::string& path, double share) {
    Config config;
    config.data.format = "csv";
    config.data.train.paths = {path};
    config.data.validation = share;
    return config;
}

std::vector<float> all_of(const Dataset& data) {
    std::vector<float> all, row(static_cast<std::size_t>(data.shape().elements()));
    for (int64_t i = 0; i < data.size(); ++i) {
        all.push_back(static_cast<float>(data.read(i, row)));
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

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

TEST_CASE("means and categories of a table are those of the rows that are not held out") {
    const test::TempFolder folder;
    const std::vector<int64_t> held = held_out_indices(1, 40, 10);
    const Config part = table_config(folder.write("all.csv", table({}, false)), 0.25);
    const Config alone = table_config(folder.write("rest.csv", table(held, false)), 0);
    const DataSplits with = open_data(part), without = open_data(alone);
    REQUIRE(with.train->size() == 30);
    CHECK(all_of(*with.train) == all_of(*without.train));
    CHECK(data_facts(part).notes == data_facts(alone).notes);
    // The twin: the held-out rows have another mean.
    CHECK(data_facts(part).notes != data_facts(table_config(folder / "all.csv", 0)).notes);
    // As rows of a test file the held-out ones have the values that they have here.
    std::vector<int64_t> rest;
    for (int64_t i = 0; i < 40; ++i) {
        if (!std::binary_search(held.begin(), held.end(), i)) rest.push_back(i);
    }
    Config tested = alone;
    tested.data.test.paths = {folder.write("held.csv", table(rest, false))};
    CHECK(all_of(*open_data(tested).test) == all_of(*with.validation));
}

TEST_CASE("a category that held-out rows alone have is none, a class that they alone have is one") {
    const test::TempFolder folder;
    int64_t seed = 1;  // one that holds out row 17
    const auto holds_it = [&] {
        const std::vector<int64_t> held = held_out_indices(static_cast<uint64_t>(seed), 40, 10);
        return std::binary_search(held.begin(), held.end(), 17);
    };
    while (!holds_it()) ++seed;
    Config config = table_config(folder.write("rare.csv", table({}, true)), 0.25);
    config.seed = seed;
    CHECK(open_data(config).train->columns()[1].categories == 2);
    CHECK(open_data(table_config(folder / "rare.csv", 0)).train->columns()[1].categories == 3);
    config.data.label_column = "color";
    CHECK(open_data(config).validation->classes() == 3);
}

TEST_CASE("held-out rows are checked as all others, though nothing is learned from them") {
    const test::TempFolder folder;
    const std::vector<int64_t> held = held_out_indices(1, 40, 10);
    std::string text = "x,y\n";
    for (int64_t i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i == held[3] ? "oops" : "1", i % 2);
    Config config = table_config(folder.write("bad.csv", text), 0.25);
    config.data.columns = {{{{"name", std::string("x")}, {"type", std::string("numeric")}}, "exp.toml:3:1"},
                           {{{"name", std::string("y")}, {"type", std::string("label")}}, "exp.toml:3:2"}};
    const auto error = test::caught([&] { data_facts(config); });
    REQUIRE(error);
    CHECK(error->says(fmt::format("bad.csv:{}: column x: \"oops\" is no number", held[3] + 2)));
}

}  // namespace lockstep
