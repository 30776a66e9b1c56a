// What is printed of a config loads again to the same one, to the last bit of each number.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "config/config_maker.hpp"

namespace lockstep::test {
namespace {

Config load_text(const std::string& toml) {
    return load({{toml}}).config;
}

std::string differing_keys(const Config& left, const Config& right) {
    std::string keys;
    for (const KeyDifference& difference : config_differences(left, right)) {
        keys += difference.key + ": " + difference.left + " | " + difference.right + "\n";
    }
    return keys;
}

TEST_CASE("a config printed as TOML or JSON loads again to the same config") {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        INFO("seed " << seed);
        const Config config = RandomConfig(seed).make();
        const std::string toml = config_to_toml(config);
        INFO(toml);
        REQUIRE(differing_keys(config, load_text(toml)) == "");
        REQUIRE(config_to_toml(load_text(toml)) == toml);
        REQUIRE(differing_keys(config, config_from_json(config_to_json(config))) == "");
    }
}

TEST_CASE("a printed number that is one digit short is seen as a difference") {
    Config config = load_text(kLeast);
    config.optimizer.lr = 0.1 + 0.2;
    std::string toml = config_to_toml(config);
    REQUIRE(differing_keys(config, load_text(toml)) == "");
    const std::string exact = "0.30000000000000004";
    REQUIRE(toml.find(exact) != std::string::npos);
    toml.replace(toml.find(exact), exact.size(), "0.3000000000000000");
    CHECK(differing_keys(config, load_text(toml)) == "optimizer.lr: 0.30000000000000004 | 0.3\n");
}

TEST_CASE("the printed origins are comments, also of a --set with line breaks in it") {
    const LoadedConfig loaded = load({{kLeast}, {}, {"log.dir=a\nseed = 7", "batch.size=3"}});
    const std::string toml = config_to_toml(loaded.config, &loaded.origins);
    CHECK(toml.find("size = 3          # samples; --set batch.size=3\n") != std::string::npos);
    CHECK(toml.find("# --set log.dir=a\\nseed = 7\n") != std::string::npos);
    CHECK(differing_keys(loaded.config, load_text(toml)) == "");
    CHECK(config_to_toml(loaded.config).find('#') == std::string::npos);
}

TEST_CASE("every key is printed but the unset one of a pair") {
    const std::string toml = config_to_toml(load_text(kLeast + "eval.every_steps = 3"));
    CHECK(toml.find("epochs = 1\n") != std::string::npos);
    CHECK(toml.find("[eval]\nevery_steps = 3\n") != std::string::npos);
    CHECK(toml.find("\nsteps =") == std::string::npos);
    CHECK(toml.find("[checkpoint]\nevery_steps = 0\nevery_epochs = 0\n") != std::string::npos);
    CHECK(toml.find("test = []\n") != std::string::npos);
}

TEST_CASE("numbers are the shortest that read back") {
    const std::vector<std::pair<Value, std::string>> cases{
        {0.05, "0.05"},
        {120.0, "120.0"},
        {1e-8, "1e-8"},
        {1e-5, "1e-5"},
        {1e20, "1e20"},
        {1.5e300, "1.5e300"},
        {-0.0, "-0.0"},
        {int64_t{7}, "7"},
        {true, "true"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"},
        {std::vector<double>{1, 2.5}, "[1.0, 2.5]"},
        {std::vector<int64_t>{}, "[]"},
        {std::string("a\"\\\n\x7f"), "\"a\\\"\\\\\\n\\u007f\""},
    };
    for (const auto& [value, text] : cases) {
        CHECK(toml_text(value) == text);
        CHECK(json_text(value) == text);
    }
    CHECK(toml_text(DataPaths{"/i", "/l", {}}) == "{ images = \"/i\", labels = \"/l\" }");
    CHECK(json_text(DataPaths{"/i", "/l", {}}) == "{\"images\": \"/i\", \"labels\": \"/l\"}");
}

TEST_CASE("a damaged stored config is refused as data") {
    for (const char* text : {"", "[]", "{\"batch\": {\"size\": 0}}", "{\"batch\": {\"sise\": 1}}", "{\"seed\": null}",
                             "{\"data\": {\"train\": {\"x\": 1}}}", "{\"batch\": {\"size\": {}}}", "{\"seed\": 1"}) {
        INFO(text);
        const auto error = caught([&] { config_from_json(text); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->one_line());
    }
}

TEST_CASE("only UTF-8 is taken for UTF-8") {
    for (const char* text : {"", "a", "é", "☃", "𝄞", "\xf4\x8f\xbf\xbf"}) CHECK(is_utf8(text));
    for (const char* text :
         {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x98"})
        CHECK_FALSE(is_utf8(text));
}

}  // namespace
}  // namespace lockstep::test
