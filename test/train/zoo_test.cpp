// Every model of the zoo, and a custom one of every kind of layer: the same bytes at any number of ranks, and through a
// stop and a resume at another number. Small samples, few steps; not so small that a shard's last map is one number.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "core/log.hpp"
#include "io/temp_folder.hpp"
#include "train/journeys.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Subject {
    std::string name;
    std::string flavor = "lockstep";
    std::vector<int64_t> shape{8, 8, 3};
    std::string more = "";  // further lines of the config
};

/// As a file would say it; sections are closed before `more`.
Config config_of(const Subject& subject) {
    const TempFolder folder;
    ConfigSources sources;
    const std::string text = fmt::format(
        "data.format = \"synthetic\"\ndata.samples = 41\ndata.test_samples = 9\ndata.shape = [{}]\n"
        "batch = {{ size = 13, shards = 8 }}\ntrain.steps = 3\n"
        "optimizer = {{ lr = 0.01, weight_decay = 1e-3 }}\n"
        "device = {{ backend = \"cpu\", threads = 1 }}\nmodel.name = \"{}\"\nmodel.flavor = \"{}\"\n{}{}",
        fmt::join(subject.shape, ", "), subject.name, subject.flavor,
        subject.more.find("data.classes") == std::string::npos ? "data.classes = 4\n" : "", subject.more);
    sources.files = {folder.write("job.toml", text)};
    return load_config(sources).config;
}

Outcome train(const Config& config, int world) {
    set_log(LogLevel::kQuiet, false);
    return outcome_on(config, open_data(config), world);
}

void check_every_world(const Subject& subject, const std::vector<Journey>& journeys = kEveryWorld) {
    INFO(subject.name << ", flavor " << subject.flavor << " " << subject.more);
    set_log(LogLevel::kQuiet, false);
    const Config config = config_of(subject);
    const DataSplits data = open_data(config);
    check_journeys(config, data, journeys);
}

/// Of a model that takes its time: all worlds in three runs.
const std::vector<Journey> kFew{{8, 1}, {4, 3}, {2}};
/// Of one whose weights fill the memory of many ranks.
const std::vector<Journey> kFewRanks{{3, 1}, {2}};

std::string layer(const std::string& entries) {
    return "[[model.layers]]\n" + entries + "\n";
}

const std::string kEveryKind =
    layer("name = \"stem\"\nkind = \"conv\"\nchannels = 8\nkernel = 3\nnorm = true\nactivation = \"relu\"") +
    layer("kind = \"residual\"\nchannels = 8\nblock = \"bottleneck\"") +
    layer("kind = \"residual\"\nchannels = 12\nstride = 2") +
    layer("name = \"left\"\nkind = \"conv\"\nchannels = 4\nkernel = [1, 3]\nbias = false\nactivation = \"sigmoid\"") +
    layer("name = \"right\"\nkind = \"pool\"\nfrom = \"residual2\"\nkernel = 3\nstride = 1\npadding = \"same\"") +
    layer("kind = \"concat\"\nfrom = [\"left\", \"right\"]") + layer("kind = \"lrn\"\nradius = 2") +
    layer("kind = \"pad_channels\"\nbefore = 1\nbehind = 2") + layer("kind = \"batch_norm\"") +
    layer("kind = \"dropout\"\nrate = 0.25") + layer("kind = \"pool\"\nmode = \"average\"\nkernel = 2") +
    layer("kind = \"flatten\"") + layer("kind = \"dense\"\nunits = 9\nnorm = true\nactivation = \"relu\"") +
    layer("kind = \"dense\"\nunits = 4");

}  // namespace

TEST_CASE("models without branches: the same bytes on any number of ranks, stopped and resumed at another") {
    check_every_world({"trivial"});
    check_every_world({"logistic"});
    check_every_world({"mlp", "lockstep", {8, 8, 3}, "model.hidden = [19, 11]\nmodel.dropout = 0.25"});
    check_every_world({"wide_deep", "lockstep", {8, 8, 3}, "model.hidden = [7, 5]"});
    check_every_world({"lenet", "tf", {8, 8, 3}, "model.channels = [3, 4]\nmodel.dropout = 0.5"});
    check_every_world({"alexnet", "tf", {12, 12, 3}}, kFew);
}

TEST_CASE("residual networks: the same bytes on any number of ranks, statistics of shards or of the batch") {
    check_every_world({"resnet20"}, kFew);
    check_every_world({"resnet20", "tf", {8, 8, 3}, "batch_norm = { scope = \"global\", unbiased = true }"}, kFew);
    check_every_world({"resnet18", "torchvision", {16, 16, 3}, "batch_norm.scope = \"global\""}, {{3, 2}});
}

TEST_CASE("a custom network of every kind of layer: the same bytes on any number of ranks, stopped and resumed") {
    check_every_world({"custom", "lockstep", {8, 8, 3}, kEveryKind});
    check_every_world({"custom", "lockstep", {8, 8, 3}, "batch_norm.scope = \"global\"\n" + kEveryKind});
}

TEST_CASE("other losses: the same bytes on any number of ranks, stopped and resumed") {
    check_every_world({"mlp", "lockstep", {4, 4, 1}, "train.label_smoothing = 0.1\nmodel.hidden = [7]"});
    check_every_world({"logistic", "lockstep", {4, 4, 1}, "data.classes = 2"});
}

TEST_CASE("twin: statistics of other shards are other statistics") {
    // What would happen if a rank normalised by all that it holds: at two ranks as with two shards.
    Config config = config_of(Subject{"resnet20"});
    const std::string eight = train(config, 1).sha256;
    config.batch.shards = 2;
    CHECK(train(config, 1).sha256 != eight);
    // With the batch's statistics only the order of sums is left to differ.
    config.batch_norm.scope = "global";
    CHECK(train(config, 1).sha256 != eight);
}

TEST_CASE("deeper residual networks: the same bytes on any number of ranks, stopped and resumed", "[.long]") {
    const std::string global = "batch_norm.scope = \"global\"";
    check_every_world({"resnet32"}, kFew);
    check_every_world({"resnet32", "tf", {8, 8, 3}, global}, kFew);
    check_every_world({"resnet44", "lockstep", {8, 8, 3}, global}, kFew);
    check_every_world({"resnet44", "tf"}, kFew);
    check_every_world({"resnet56"}, kFew);
    check_every_world({"resnet56", "tf", {16, 16, 3}, global}, kFew);
    check_every_world({"resnet18", "lockstep", {16, 16, 3}}, kFew);
    check_every_world({"resnet18", "tf", {16, 16, 3}, global}, kFew);
    check_every_world({"resnet34", "lockstep", {16, 16, 3}}, kFew);
    check_every_world({"resnet34", "torchvision", {16, 16, 3}, global}, kFew);
    check_every_world({"resnet50", "lockstep", {32, 32, 3}}, kFew);
    check_every_world({"resnet50", "tf", {32, 32, 3}, global}, kFew);
    check_every_world({"resnet50", "torchvision", {16, 16, 3}, global}, kFew);
    check_every_world({"resnet50_v1", "tf", {32, 32, 3}, global}, kFew);
    check_every_world({"resnet50_v1.5", "lockstep", {32, 32, 3}}, kFew);
}

TEST_CASE("large models: the same bytes on any number of ranks, stopped and resumed", "[.long]") {
    check_every_world({"googlenet", "lockstep", {32, 32, 3}}, kFew);
    check_every_world({"googlenet", "tf", {32, 32, 3}}, kFew);
    check_every_world({"googlenet", "torchvision", {32, 32, 3}, "batch_norm.scope = \"global\""}, kFew);
    check_every_world({"alexnet", "lockstep", {32, 32, 3}, "model.dropout = 0.5"}, kFew);
    check_every_world({"alexnet", "tf", {67, 67, 3}}, kFew);
    check_every_world({"alexnet", "torchvision", {224, 224, 3}, "model.dropout = 0.5"}, kFewRanks);
    check_every_world({"vgg11", "lockstep", {32, 32, 3}}, kFew);
    check_every_world({"vgg16", "tf", {32, 32, 3}, "model.dropout = 0.5"}, kFewRanks);
}
