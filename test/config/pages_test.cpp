// What the table of keys is turned into for people: the reference page, the starter file, the schema, and the key that
// was meant.
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/config_maker.hpp"
#include "config/nearest.hpp"

namespace lockstep::test {
namespace {

TEST_CASE("docs/config.md is the page that the table makes; `lockstep config reference > docs/config.md` renews it") {
    std::ifstream file(LOCKSTEP_SOURCE_DIR "/docs/config.md", std::ios::binary);
    const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(page == config_reference());
}

TEST_CASE("the starter file loads as it is, and with every comment line taken for a setting, but train.steps") {
    const std::string starter = config_starter();
    const LoadedConfig loaded = load({{starter}});
    CHECK(loaded.config.train.epochs == 10);
    CHECK(loaded.config.data.format == "idx");
    CHECK(loaded.config.data.test.labels == "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz");

    std::string all, line;
    for (const char c : starter) {
        line += c;
        if (c != '\n') continue;
        const bool setting =
            line.starts_with("# ") && line.find(" = ") == line.find(' ', 2) && find_key(line.substr(2)) == nullptr;
        const bool known = line.find("# steps =") == std::string::npos && line.find("# running =") == std::string::npos;
        all += setting && known ? line.substr(2) : line;
        line.clear();
    }
    CHECK(config_differences(loaded.config, load({{all}}).config).empty());
    CHECK(all.find("\nclip_norm = 0.0") != std::string::npos);
}

TEST_CASE("the schema is JSON and has every key with its default and bounds") {
    const auto schema = nlohmann::json::parse(config_schema());
    CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
    for (const Key& key : config_keys()) {
        INFO(key.name);
        const std::string section(section_of(key)), name(name_in_section(key));
        const auto& place = section.empty() ? schema["properties"] : schema["properties"][section]["properties"];
        REQUIRE(place.contains(name));
        CHECK(place[name].contains("default") == !key.field.optional);
    }
    const auto& batch = schema["properties"]["batch"];
    CHECK(batch["properties"]["size"]["minimum"] == 1);
    CHECK(batch["properties"]["layout"]["enum"] == nlohmann::json({"batch", "epoch"}));
    CHECK(batch["additionalProperties"] == false);
    CHECK(schema["properties"]["optimizer"]["properties"]["momentum"]["exclusiveMaximum"] == 1);
    CHECK(schema["properties"]["train"]["not"]["required"] == nlohmann::json({"epochs", "steps"}));
}

TEST_CASE("the distance of words counts insertions, deletions, substitutions and swaps") {
    const std::vector<std::tuple<const char*, const char*, size_t>> cases{
        {"", "", 0},       {"", "abc", 3},   {"abc", "abc", 0},        {"abc", "ABC", 0},
        {"abc", "acb", 1}, {"lrr", "lr", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}};
    for (const auto& [left, right, distance] : cases) {
        CHECK(edit_distance(left, right) == distance);
        CHECK(edit_distance(right, left) == distance);
    }
}

TEST_CASE("the nearest key is the one that was meant, and none is better than a far one") {
    const std::vector<std::pair<std::string, std::string>> cases{{"optimizer.lrr", "optimizer.lr"},
                                                                 {"optimizr.lr", "optimizer.lr"},
                                                                 {"learning_rate", ""},
                                                                 {"momentum", "optimizer.momentum"},
                                                                 {"batch_norm.momentun", "batch_norm.momentum"},
                                                                 {"train.epoch", "train.epochs"},
                                                                 {"checkpoint.every_step", "checkpoint.every_steps"},
                                                                 {"x", ""},
                                                                 {"qqqqqqqqqqqq.zzzzzz", ""}};
    for (const auto& [word, key] : cases) {
        INFO(word);
        CHECK(nearest_key(word) == key);
    }
}

}  // namespace
}  // namespace lockstep::test
