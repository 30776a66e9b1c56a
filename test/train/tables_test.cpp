// Runs on tables: the same bytes at any number of ranks, from memory and from the disk, and through a stop and a
// resume; with each loss.
#include <catch2/catch.hpp>

#include "core/log.hpp"
#include "data/csv.hpp"
#include "data/libsvm.hpp"
#include "data/npz.hpp"
#include "data/table_config.hpp"
#include "io/temp_folder.hpp"
#include "train/journeys.hpp"

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

/// The linear model alone, on numbers that are standardised.
Config adult_logistic() {
    Config config = census();
    config.model.name = "logistic";
    config.data.columns.pop_back();
    config.data.columns.pop_back();
    for (const std::size_t number : {0, 2, 4, 10, 11, 12}) {
        config.data.columns[number].entries.emplace_back("scale", std::string("standard"));
    }
    return config;
}

/// Three classes, and measurements that are missing.
Config penguins() {
    Config config = table_config("csv", kFiles + "/penguins.csv", kFiles + "/penguins.csv");
    config.data.label_column = "species";
    config.model.name = "wide_deep";
    config.model.hidden = {6};
    config.optimizer.lr = 1e-5;
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
                            {"adult_logistic", adult_logistic(), open_csv, "\"recall\":"},
                            {"penguins", penguins(), open_csv, "\"accuracy\":"},
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

}  // namespace

TEST_CASE("tables of every format train to the same bytes on 1, 2, 3, 4 and 8 ranks, from memory and from the disk") {
    for (Format& format : formats()) {
        INFO(format.name);
        const TempFolder cache;
        format.config.device.cache = cache.path();
        const DataSplits held = format.open(format.config, kTableMemory);
        const DataSplits made = format.open(format.config, 0);
        const Outcome expected = outcome_on(format.config, held, 1);
        CHECK(expected.metrics.find(format.words) != std::string::npos);
        CHECK(outcome_on(format.config, made, 1) == expected);
        for (const int world : {2, 3, 4, 8}) {
            INFO(world << " ranks");
            CHECK(outcome_on(format.config, world % 2 == 0 ? held : made, world) == expected);
        }
    }
}

TEST_CASE("a run on a table that stops goes on to the same bytes at any number of ranks") {
    for (Format& format : formats()) {
        INFO(format.name);
        const TempFolder cache;
        format.config.device.cache = cache.path();
        format.config.eval.every_steps = 2;
        check_journeys(format.config, format.open(format.config, kTableMemory));
    }
}

TEST_CASE("the loss follows from the data and the model, and another gives other weights") {
    Format format = formats().at(4);
    REQUIRE(std::string(format.name) == "heart");
    const DataSplits data = format.open(format.config, kTableMemory);
    const std::string automatic = outcome_on(format.config, data, 1).sha256;
    format.config.train.loss = "sigmoid";
    CHECK(outcome_on(format.config, data, 1).sha256 == automatic);
    format.config.train.loss = "softmax";
    const std::string softmax = outcome_on(format.config, data, 1).sha256;
    CHECK(softmax != automatic);
    format.config.train.label_smoothing = 0.1;
    CHECK(outcome_on(format.config, data, 1).sha256 != softmax);
}
