// The confusion matrix, and precision and recall of it, at any number of ranks.
#include "train/confusion.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "train/evaluator.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Of the initial weights, on the training data.
EvalResult evaluate_at(int world, int64_t classes) {
    set_log(LogLevel::kQuiet, false);
    Job job;
    job.samples = 203;
    job.batch = 48;
    job.steps = 1;
    job.classes = classes;
    LoadedConfig loaded = config_of(job);
    loaded.config.device.threads = 1;
    const DataSplits data = open_data(loaded.config);
    EvalResult first;
    run_thread_world(world, [&](Communicator& comm) {
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        options.on_engine = [&](StepEngine& engine) {
            const EvalResult result = evaluate(
                {comm, engine.backend(), engine.network(), engine.weights(), loaded.config}, *data.train, true);
            if (comm.rank() == 0) first = result;
        };
        train_on(comm, loaded, data, options);
    });
    return first;
}

}  // namespace

TEST_CASE("precision and recall are shares of a column and of a row; of nothing, NaN") {
    Confusion confusion(2);
    for (const auto& [label, predicted, times] : {std::array{0, 0, 5}, {0, 1, 1}, {1, 0, 2}, {1, 1, 3}}) {
        for (int i = 0; i < times; ++i) confusion.add(label, predicted);
    }
    CHECK(confusion.counts() == std::vector<int64_t>{5, 1, 2, 3});
    CHECK(confusion.precision(1) == 0.75);  // 3 of 4 predicted 1
    CHECK(confusion.recall(1) == 0.6);      // 3 of 5 that are 1
    CHECK(confusion.precision(0) == 5.0 / 7);
    CHECK(confusion.recall(0) == 5.0 / 6);
    CHECK(std::isnan(Confusion(2).precision(1)));
    CHECK(std::isnan(Confusion(2).recall(1)));
    Confusion sum(2);
    sum.add(confusion.counts());
    sum.add(confusion.counts());
    CHECK(sum.count(1, 0) == 4);
}

TEST_CASE("a share of nothing is a dash to people") {
    EvalResult result;
    result.precision = Confusion(2).precision(1);
    result.recall = 0.5;
    CHECK_THAT(eval_text(result), Catch::Contains("precision -  recall 0.5000"));
}

TEST_CASE("of equal values the first class is the largest") {
    CHECK(largest_class(std::vector<float>{1, 3, 3, 2}) == 1);
    CHECK(largest_class(std::vector<float>{7}) == 0);
}

TEST_CASE("a confusion matrix is a table of few classes, a list of the most frequent ones of many, all of it in JSON") {
    const std::vector<int64_t> two{5, 1, 2, 3};
    CHECK(confusion_json(two) == "[[5,1],[2,3]]");
    CHECK_THAT(confusion_text(two), Catch::Contains("label \\ predicted  0  1") && Catch::Contains("2  3"));
    std::vector<int64_t> many(50 * 50);
    many[3 * 50 + 7] = 12;
    many[8 * 50 + 1] = 40;
    many[9 * 50 + 9] = 99;  // right
    const std::string text = confusion_text(many);
    CHECK_THAT(text, Catch::Contains("2 kinds of confusion") && Catch::Contains("40  label 8 predicted as 1\n"));
    CHECK(text.find("label 8") < text.find("label 3"));
    CHECK(text.find("99") == std::string::npos);
}

TEST_CASE("the matrix counts every sample once at any world; its diagonal is what accuracy counts") {
    for (const int64_t classes : {2, 4, 10}) {
        const EvalResult one = evaluate_at(1, classes);
        const auto width = static_cast<std::size_t>(classes);
        REQUIRE(one.confusion.size() == width * width);
        CHECK(std::accumulate(one.confusion.begin(), one.confusion.end(), int64_t{0}) == 203);
        int64_t right = 0;
        for (std::size_t c = 0; c < width; ++c) right += one.confusion[c * width + c];
        CHECK(one.accuracy == static_cast<double>(right) / 203);
        CHECK(one.precision.has_value() == (classes == 2));
        if (classes == 2) {
            CHECK(*one.recall ==
                  static_cast<double>(one.confusion[3]) / static_cast<double>(one.confusion[2] + one.confusion[3]));
        }
        for (const int world : {2, 3, 4, 8}) {
            const EvalResult other = evaluate_at(world, classes);
            CHECK(eval_line(other) == eval_line(one));
            CHECK(other.confusion == one.confusion);
        }
    }
}
