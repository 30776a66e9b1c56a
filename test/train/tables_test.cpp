// Runs on tables: the same bytes at any number of ranks, from memory and from the disk, and through a stop and a
// resume; with each loss.
#include <catch2/catch.hpp>
#include <mutex>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "data/csv.hpp"
#include "data/libsvm.hpp"
#include "data/npz.hpp"
#include "data/table_config.hpp"
#include "io/temp_folder.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Config census() {
    Config config = table_config("csv", kFiles + "/adult.data", kFiles + "/adult.test");
    config.data.header = false;
    config.data.comment = "|";
    config.data.columns = adult_columns();
    const auto text = [](const char* t) { return std::string(t); };
    config.data.columns[6] = column({{"name", text("occupation")}, {"hash", int64_t{100}}, {"embedding", int64_t{8}}});
    config.data.columns.push_back(
        column({{"name", text("ages")},
                {"of", std::vector<std::string>{"age"}},
                {"boundaries", std::vector<double>{18, 25, 30, 35, 40, 45, 50, 55, 60, 65}}}));
    config.data.columns.push_back(column({{"name", text("cross")},
                                          {"of", std::vector<std::string>{"ages", "education", "occupation"}},
                                          {"hash", int64_t{300}}}));
    config.model.name = "wide_deep";
    config.model.hidden = {20, 10};
    config.optimizer.name = "adam";
    config.optimizer.lr = 0.01;
    return config;
}

Config housing() {
    Config config = table_config("csv", kFiles + "/california_housing.csv");
    config.data.test = config.data.train;
    config.data.label_column = "median_house_value";
    config.train.loss = "mse";
    config.optimizer.lr = 1e-14;  // the target is in dollars
    config.model.hidden = {11};
    return config;
}

Config heart() {
    Config config = table_config("libsvm", kFiles + "/heart_scale", kFiles + "/heart_scale");
    config.model.name = "logistic";
    return config;
}

Config small_arrays() {
    Config config = table_config("npz", kFiles + "/npy/xy_deflated.npz", kFiles + "/npy/xy_stored.npz");
    config.model.hidden = {7};
    config.train.label_smoothing = 0.1;
    return config;
}

struct Format {
    const char* name;
    Config config;
    DataSplits (*open)(const Config&, int64_t memory);
    const char* words;  // of its evaluations
};

std::vector<Format> formats() {
    std::vector<Format> all{{"census", census(), open_csv, "\"auc\":"},
                            {"housing", housing(), open_csv, "\"mse\":"},
                            {"heart", heart(), open_libsvm, "\"auc\":"},
                            {"arrays", small_arrays(), open_npz, "\"accuracy\":"}};
    for (Format& format : all) {
        Config& config = format.config;
        config.batch.size = 13;
        config.train.steps = 9;
        config.device.threads = 1;
        config.device.backend = "cpu";
    }
    return all;
}

Outcome train(const Config& config, const DataSplits& data, int world, const TrainOptions& wanted = {}) {
    set_log(LogLevel::kQuiet, false);
    Outcome outcome;
    std::mutex mutex;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig own;
        own.config = config;
        TrainOptions options = wanted;
        options.progress.style = ProgressStyle::kNone;
        const TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() != 0) return;
        const std::scoped_lock lock(mutex);
        outcome = {result.sha256, without_wall(result.metrics)};
    });
    return outcome;
}

}  // namespace

TEST_CASE("tables of every format train to the same bytes on 1, 2, 3, 4 and 8 ranks, from memory and from the disk") {
    for (Format& format : formats()) {
        INFO(format.name);
        const TempFolder cache;
        format.config.device.cache = cache.path();
        const DataSplits held = format.open(format.config, kTableMemory);
        const DataSplits made = format.open(format.config, 0);
        const Outcome expected = train(format.config, held, 1);
        CHECK(expected.metrics.find(format.words) != std::string::npos);
        CHECK(train(format.config, made, 1) == expected);
        for (const int world : {2, 3, 4, 8}) {
            INFO(world << " ranks");
            CHECK(train(format.config, world % 2 == 0 ? held : made, world) == expected);
        }
    }
}

TEST_CASE("a run on a table that stops goes on to the same bytes") {
    for (Format& format : formats()) {
        INFO(format.name);
        const TempFolder folder;
        format.config.device.cache = folder / "cache";
        format.config.checkpoint.every_steps = 4;
        const DataSplits data = format.open(format.config, kTableMemory);
        TrainOptions whole;
        whole.out = folder / "whole";
        const Outcome expected = train(format.config, data, 2, whole);
        TrainOptions resumed;
        resumed.resume = ResumeMode::kPath;
        resumed.resume_path = folder / "whole/checkpoints/step-00000004";
        CHECK(train(format.config, data, 3, resumed).sha256 == expected.sha256);
    }
}

TEST_CASE("the loss follows from the data and the model, and another gives other weights") {
    Format format = formats()[2];
    const DataSplits data = format.open(format.config, kTableMemory);
    const std::string automatic = train(format.config, data, 1).sha256;
    format.config.train.loss = "sigmoid";
    CHECK(train(format.config, data, 1).sha256 == automatic);
    format.config.train.loss = "softmax";
    const std::string softmax = train(format.config, data, 1).sha256;
    CHECK(softmax != automatic);
    format.config.train.label_smoothing = 0.1;
    CHECK(train(format.config, data, 1).sha256 != softmax);
}
