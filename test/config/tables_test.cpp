// Arrays of tables, such as [[model.layers]], and lists of strings: from every source to the same values and back.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "config/config_maker.hpp"

namespace lockstep::test {
namespace {

const std::string kLayers =
    "[[model.layers]]\nkind = \"conv\"\nchannels = 8\nkernel = 3\nstride = [2, 1]\n\n"
    "  [[model.layers]]\n  kind = \"add\"\n  from = [\"a\", \"input\"]\n  deviation = 1\n";

std::vector<ConfigTable> expected() {
    ConfigTable conv, add;
    conv.entries = {{"kind", std::string("conv")},
                    {"channels", int64_t{8}},
                    {"kernel", std::vector<int64_t>{3}},
                    {"stride", std::vector<int64_t>{2, 1}}};
    add.entries = {{"kind", std::string("add")}, {"from", std::vector<std::string>{"a", "input"}}, {"deviation", 1.0}};
    return {conv, add};
}

TEST_CASE("an array of tables has typed entries in the order of the file, and the place of each table") {
    const TempFolder folder;
    const LoadedConfig loaded = load(folder, {{kLeast + kLayers}});
    REQUIRE(loaded.config.model.layers == expected());
    CHECK(loaded.config.model.layers[0].origin == folder / "1.toml" + ":3:1");
    CHECK(loaded.config.model.layers[1].origin == folder / "1.toml" + ":9:3");
    CHECK(*loaded.config.model.layers[0].find("channels") == ConfigTable::Value(int64_t{8}));
    CHECK(loaded.config.model.layers[0].find("units") == nullptr);
}

TEST_CASE("a file, a variable and --set say the same tables, and the last one's take the place of all before") {
    const std::string value =
        "[{ kind = \"conv\", channels = 8, kernel = [3], stride = [2, 1] }, "
        "{ kind = \"add\", from = [\"a\", \"input\"], deviation = 1.0 }]";
    CHECK(load({{kLeast + "model.layers = " + value}}).config.model.layers == expected());
    CHECK(load({{kLeast}, {{"LOCKSTEP_MODEL_LAYERS", value}}}).config.model.layers == expected());
    const LoadedConfig set = load({{kLeast + "[[model.layers]]\nkind = \"relu\"\n"}, {}, {"model.layers=" + value}});
    CHECK(set.config.model.layers == expected());
    CHECK(set.config.model.layers[1].origin == "--set model.layers=" + value);
    CHECK(load({{kLeast + kLayers}, {}, {"model.layers=[]"}}).config.model.layers.empty());
}

TEST_CASE("tables are printed as tables and read back, as TOML and as JSON, in their order") {
    const TempFolder folder;
    const LoadedConfig loaded = load(folder, {{kLeast + kLayers}});
    const std::string toml = config_to_toml(loaded.config);
    CHECK(toml.find("\n[[model.layers]]\nkind = \"conv\"\nchannels = 8\nkernel = [3]\nstride = [2, 1]\n"
                    "\n[[model.layers]]\nkind = \"add\"\nfrom = [\"a\", \"input\"]\ndeviation = 1.0\n") !=
          std::string::npos);
    CHECK(load({{toml}}).config.model.layers == expected());
    CHECK(config_from_json(config_to_json(loaded.config)).model.layers == expected());
    CHECK(config_to_toml(loaded.config, &loaded.origins).find("[[model.layers]]  # " + folder / "1.toml" + ":3:1\n") !=
          std::string::npos);
}

TEST_CASE("the order of the entries of a table is no part of it") {
    const std::string turned = "model.layers = [{ stride = [2, 1], kernel = [3], channels = 8, kind = \"conv\" }]";
    CHECK(load({{kLeast + turned}}).config.model.layers[0] == expected()[0]);
}

TEST_CASE("a table that differs in one entry is a difference of its key, and its place is not") {
    Config left, right;
    left.model.layers = right.model.layers = expected();
    right.model.layers[0].origin = "elsewhere";
    CHECK(config_differences(left, right).empty());
    right.model.layers[0].entries[1].second = int64_t{9};
    const std::vector<KeyDifference> differences = config_differences(left, right);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].key == "model.layers");
    CHECK(differences[0].right.starts_with("[{ kind = \"conv\", channels = 9, "));
}

TEST_CASE("all faults of all tables are named with the place of the entry and the nearest key") {
    CHECK(
        faults(
            {{kLeast +
              "[[model.layers]]\nkind = \"conv\"\nkernl = 3\nchannels = \"x\"\n"
              "[[model.layers]]\nkind = \"cnov\"\nstride = [1, 0]\nfrom = [1]\n[[model.layers]]\nname = \"a\"\n"}}) ==
        std::vector<std::string>{
            "1.toml:5:1: model.layers[0].kernl: unknown key; did you mean kernel?",
            "1.toml:6:1: model.layers[0].channels must be a whole number, got \"x\"",
            "1.toml:8:1: model.layers[1].kind: unknown value \"cnov\"; one of conv, dense, relu, sigmoid, pool, "
            "global_pool, batch_norm, dropout, lrn, add, concat, pad_channels, flatten, residual, one_hot, embedding; "
            "did you mean conv?",
            "1.toml:9:1: model.layers[1].stride[1] must be at least 1, got 0",
            "1.toml:10:1: model.layers[1].from[0] must be a string, got 1",
            "1.toml:11:1: model.layers[2]: kind is missing (what it does)"});
    CHECK(faults({{kLeast + "[model.layers]\nkind = \"conv\"\n"}}) ==
          std::vector<std::string>{"1.toml:3:8: model.layers must be a list of tables, got a table; write "
                                   "[[model.layers]] for each"});
    CHECK(faults({{kLeast}, {}, {"model.layers=[1, {kind = \"x\"}]"}}).at(0) ==
          "--set model.layers=[1, {kind = \"x\"}]: model.layers[0] must be a table, got 1");
}

TEST_CASE("windows of a layer are bounded, so that no size overflows") {
    const std::string conv = "[[model.layers]]\nkind = \"conv\"\nchannels = 4\n";
    for (const char* key : {"kernel", "stride", "dilation", "pad"}) {
        CHECK(faults({{kLeast + conv + key + " = 32768\n"}}).empty());
        CHECK(faults({{kLeast + conv + key + " = [1, 32769]\n"}}) ==
              std::vector<std::string>{
                  fmt::format("1.toml:6:1: model.layers[0].{}[1] must be {}, got 32769", key, "at most 32768")});
    }
}

TEST_CASE("the schema knows what a table may hold and must hold") {
    const auto schema = nlohmann::json::parse(config_schema());
    const auto& layer = schema["properties"]["model"]["properties"]["layers"]["items"];
    CHECK(layer["required"] == nlohmann::json({"kind"}));
    CHECK(layer["additionalProperties"] == false);
    CHECK(layer["properties"]["kernel"]["oneOf"][0]["type"] == "integer");
    CHECK(layer["properties"]["kernel"]["oneOf"][1]["type"] == "array");
    CHECK(layer["properties"]["rate"]["exclusiveMaximum"] == 1);
}

}  // namespace
}  // namespace lockstep::test
