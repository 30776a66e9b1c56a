// The table of keys itself: complete, without two rows for one thing, and true about which keys can change a bit.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "config/config_maker.hpp"
#include "config/read_value.hpp"

namespace lockstep::test {
namespace {

TEST_CASE("every row has a section, a doc, a variable of its own and a legal default") {
    std::set<std::string> names, variables;
    for (const Key& key : config_keys()) {
        INFO(key.name);
        CHECK(names.insert(std::string(key.name)).second);
        CHECK(variables.insert(environment_name(key.name)).second);
        CHECK(std::any_of(config_sections().begin(), config_sections().end(),
                          [&](const Section& s) { return s.name == section_of(key); }));
        CHECK(!key.doc.empty());
        CHECK(key.doc.find('\n') == std::string_view::npos);
        CHECK(key.doc.find('|') == std::string_view::npos);  // would end a column of the reference page
        if (key.field.optional || key.field.type == KeyType::kPaths) continue;
        const Value standard = default_of(key);
        const std::optional<TomlValue> toml = parse_toml_value(toml_text(standard));
        REQUIRE(toml);
        const ReadValue read = read_value(key, *toml);
        CHECK(read.fault == "");
        CHECK(read.value == standard);
    }
}

TEST_CASE("what a kernel gets in fp32 is marked: every number of optimizer, data, model and batch norm") {
    const std::set<std::string_view> fp64{"data.validation", "schedule.warmup_epochs", "schedule.every_epochs",
                                          "schedule.factor", "schedule.boundaries",    "schedule.power",
                                          "schedule.rate",   "device.timeout_s"};
    for (const Key& key : config_keys()) {
        INFO(key.name);
        const bool number = key.field.type == KeyType::kNumber || key.field.type == KeyType::kNumbers;
        CHECK(key.fp32 == (number && !fp64.contains(key.name)));
    }
}

TEST_CASE("no two keys share a field") {
    for (const Key& changed : config_keys()) {
        RandomConfig random(7);
        Config config;
        Value value = default_of(changed);
        for (int i = 0; i < 100 && value == default_of(changed); ++i) {
            const bool free_text = changed.field.type == KeyType::kString && changed.choices.empty();
            value = free_text ? Value(std::string("a text")) : random.value(changed);
        }
        if (value == default_of(changed) && !changed.choices.empty()) value = std::string(choices_of(changed).back());
        INFO(changed.name);
        REQUIRE(value != default_of(changed));
        changed.field.set(config, value);
        const std::vector<KeyDifference> differences = config_differences(Config{}, config);
        REQUIRE(differences.size() == 1);
        CHECK(differences[0].key == changed.name);
        CHECK(differences[0].right == toml_text(value));
    }
}

TEST_CASE(
    "the reach of a key is as promised: device, log, check, checkpoint, eval, micro and message sizes change no bit") {
    for (const Key& key : config_keys()) {
        INFO(key.name);
        const std::set<std::string_view> free_sections{"log", "check", "checkpoint", "eval", "device"};
        const bool no_bit = (free_sections.contains(section_of(key)) && key.name != "device.arithmetic" &&
                             key.name != "device.precision") ||
                            key.name == "batch.micro" || key.name == "reduce.bucket_kib" ||
                            key.name == "reduce.small_kib";
        const bool path = key.name == "data.train" || key.name == "data.test" || key.name == "model.weights";
        // Both ends of a message must go the same way.
        const bool own = no_bit && key.name != "device.transport" &&
                         (section_of(key) == "device" || key.name == "log.dir" || key.name == "batch.micro");
        CHECK(key.effect == (path     ? KeyEffect::kPath
                             : own    ? KeyEffect::kPerRank
                             : no_bit ? KeyEffect::kShared
                                      : KeyEffect::kBits));
    }
}

TEST_CASE("with native in either config the message sizes and their transport can change bits") {
    Config left, right;
    right.reduce.bucket_kib = 1;
    CHECK(config_differences(left, right).at(0).effect == KeyEffect::kShared);
    left.reduce.algorithm = "native";
    const std::vector<KeyDifference> differences = config_differences(left, right);
    REQUIRE(differences.size() == 2);
    CHECK(differences[0].key == "reduce.algorithm");
    CHECK(differences[1].effect == KeyEffect::kBits);
    CHECK(differences[1].left == "4096");
    CHECK(differences[1].right == "1");
    right = left;
    right.device.transport = "staged";
    CHECK(config_differences(left, right).at(0).effect == KeyEffect::kBits);
}

TEST_CASE("where a plateau, early stopping or the best checkpoint goes by evaluations, [eval] can change bits") {
    Config left, right;
    right.eval.every_epochs = 2;
    CHECK(config_differences(left, right).at(0).effect == KeyEffect::kShared);
    for (const auto change :
         {+[](Config& c) { c.schedule.name = "plateau"; }, +[](Config& c) { c.train.stop_metric = "loss"; },
          +[](Config& c) { c.checkpoint.best = "loss"; }}) {
        Config one = left, other = right;
        change(one);
        CHECK(config_differences(one, other).back().effect == KeyEffect::kBits);
        change(other);
        REQUIRE(config_differences(one, other).size() == 1);
        CHECK(config_differences(one, other)[0].effect == KeyEffect::kBits);
    }
}

TEST_CASE("a difference of epochs and steps shows the unset side") {
    Config left, right;
    left.train.epochs = 3;
    right.train.steps = 4;
    const std::vector<KeyDifference> differences = config_differences(left, right);
    REQUIRE(differences.size() == 2);
    CHECK(differences[0].left == "3");
    CHECK(differences[0].right == "unset");
    CHECK(differences[1].left == "unset");
}

}  // namespace
}  // namespace lockstep::test
