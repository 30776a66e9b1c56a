// Every model of the zoo, and a custom one of every kind of layer: the same bytes at any number of ranks, and through a
// stop and a resume at another number. Small samples, few steps.
#include <catch2/catch.hpp>
#include <fstream>
#include <mutex>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "io/temp_folder.hpp"
#include "train/point.hpp"

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
    const DataSplits data = open_data(config);
    Outcome outcome;
    std::mutex mutex;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig own;
        own.config = config;
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        const TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() != 0) return;
        const std::scoped_lock lock(mutex);
        outcome = {result.sha256, without_wall(result.metrics)};
    });
    return outcome;
}

void check_equal_worlds(const Subject& subject, std::initializer_list<int> worlds = {2, 3, 4}) {
    INFO(subject.name << ", flavor " << subject.flavor << " " << subject.more);
    const Config config = config_of(subject);
    const Outcome alone = train(config, 1);
    REQUIRE(!alone.sha256.empty());
    for (const int world : worlds) {
        INFO("world " << world);
        const Outcome together = train(config, world);
        CHECK(together.sha256 == alone.sha256);
        CHECK(together.metrics == alone.metrics);
    }
}

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

TEST_CASE("models without branches train to the same bytes on any number of ranks") {
    check_equal_worlds({"trivial"});
    check_equal_worlds({"logistic"});
    check_equal_worlds({"wide_deep", "lockstep", {8, 8, 3}, "model.hidden = [7, 5]"});
    check_equal_worlds({"lenet", "tf", {8, 8, 3}, "model.channels = [3, 4]\nmodel.dropout = 0.5"});
    check_equal_worlds({"alexnet", "tf", {12, 12, 3}});
}

TEST_CASE("residual networks train to the same bytes on any number of ranks, statistics of shards or of the batch") {
    check_equal_worlds({"resnet20"});
    check_equal_worlds({"resnet20", "tf", {8, 8, 3}, "batch_norm = { scope = \"global\", unbiased = true }"});
    check_equal_worlds({"resnet18", "torchvision", {16, 16, 3}, "batch_norm.scope = \"global\""}, {3});
}

TEST_CASE("a custom network of every kind of layer trains to the same bytes on any number of ranks") {
    check_equal_worlds({"custom", "lockstep", {8, 8, 3}, kEveryKind});
    check_equal_worlds({"custom", "lockstep", {8, 8, 3}, "batch_norm.scope = \"global\"\n" + kEveryKind});
}

TEST_CASE("other losses train to the same bytes on any number of ranks") {
    check_equal_worlds({"mlp", "lockstep", {4, 4, 1}, "train.label_smoothing = 0.1\nmodel.hidden = [7]"});
    check_equal_worlds({"logistic", "lockstep", {4, 4, 1}, "data.classes = 2"});
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

TEST_CASE("large models train to the same bytes on any number of ranks", "[.long]") {
    check_equal_worlds({"alexnet", "torchvision", {224, 224, 3}, "model.dropout = 0.5"}, {3});
    check_equal_worlds({"alexnet", "tf", {67, 67, 3}}, {2, 3});
    check_equal_worlds({"vgg11", "lockstep", {32, 32, 3}}, {2, 3});
    check_equal_worlds({"vgg16", "tf", {32, 32, 3}, "model.dropout = 0.5"}, {3});
    check_equal_worlds({"googlenet", "lockstep", {32, 32, 3}}, {2, 3, 4});
    check_equal_worlds({"googlenet", "tf", {32, 32, 3}}, {2, 3, 4});
    check_equal_worlds({"resnet34", "lockstep", {16, 16, 3}}, {2, 3});
    check_equal_worlds({"resnet50", "lockstep", {32, 32, 3}}, {2, 3, 4});
    check_equal_worlds({"resnet50", "tf", {32, 32, 3}, "batch_norm.scope = \"global\""}, {2, 3, 4});
    check_equal_worlds({"resnet56", "tf", {16, 16, 3}}, {2, 3, 4});
}
