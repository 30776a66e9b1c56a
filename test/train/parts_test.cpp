// Parts of a run that can be checked by themselves: metrics lines, progress text, AUC, the replay of a non-finite step.
#include <catch2/catch.hpp>
#include <limits>
#include <mutex>

#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"
#include "train/evaluator.hpp"
#include "train/point.hpp"
#include "train/progress.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a step line has the fields of the surface, in order, with shortest numbers") {
    REQUIRE(
        step_line({10, 0, 1280, 2.3025F, 0.05F, std::nullopt, 0.5, 100000}) ==
        R"({"event":"step","step":10,"epoch":0,"samples":1280,"loss":2.3025,"lr":0.05,"wall":{"time_s":0.5,"samples_per_s":1e+05}})");
    REQUIRE_THAT(step_line({10, 0, 1280, 2.3025F, 0.05F, 1.5F, 0.5, 1}),
                 Catch::Contains(R"("lr":0.05,"grad_norm":1.5,"wall")"));
}

TEST_CASE("an eval line has top5 or auc where the number of classes asks for it") {
    EvalResult result;
    result.step = 469;
    result.epoch = 1;
    result.count = 10000;
    result.loss = 0.4;
    result.accuracy = 0.85;
    REQUIRE(eval_line(result) ==
            R"({"event":"eval","step":469,"epoch":1,"split":"test","count":10000,"loss":0.4,"accuracy":0.85})");
    result.top5 = 0.99;
    REQUIRE_THAT(eval_line(result), Catch::EndsWith(R"("accuracy":0.85,"top5":0.99})"));
}

TEST_CASE("progress reads as the surface says") {
    REQUIRE(progress_text({2, 10, 470, 4690, 0.41234F, 0.05F, 112000.4, 0.041, 41.2}) ==
            "epoch 2/10  step 470/4690  loss 0.4123  lr 0.05  112,000 samples/s  comm 4%  eta 0:41");
    REQUIRE_THAT(progress_text({1, 1, 1, 1, 0, 1, 999, 0, 3725}),
                 Catch::EndsWith("  999 samples/s  comm 0%  eta 1:02:05"));
}

TEST_CASE("the AUC is exact: pairs won, and half of those tied") {
    // positives .9 .4 .4, negatives .4 .1: pairs won: .9 beats both (2), each .4 beats .1 (2); ties: each .4 with .4
    // (2, half).
    const std::vector<float> scores{.9F, .4F, .4F, .4F, .1F};
    const std::vector<int32_t> labels{1, 1, 1, 0, 0};
    REQUIRE(area_under_curve(scores, labels) == (2 * 4 + 2) / (2.0 * 3 * 2));
    REQUIRE(std::isnan(area_under_curve(scores, std::vector<int32_t>{1, 1, 1, 1, 1})));
}

TEST_CASE("scores that are no numbers have no AUC, wherever they stand") {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> scores;
    std::vector<int32_t> labels;
    for (int i = 0; i < 1000; ++i) {
        scores.push_back(static_cast<float>(i * 7919 % 1000) / 1000);
        labels.push_back(i % 2);
    }
    REQUIRE(area_under_curve(scores, labels) > 0);
    for (const std::size_t at : {0U, 17U, 500U, 999U}) {
        std::vector<float> own = scores;
        own[at] = kNan;
        REQUIRE(std::isnan(area_under_curve(own, labels)));
    }
    REQUIRE(std::isnan(area_under_curve(std::vector<float>(1000, kNan), labels)));
}

TEST_CASE("two classes have an AUC, ten have top-5, four have neither; the same at any world") {
    for (const int64_t classes : {2, 4, 10}) {
        Job job;
        job.samples = 200;
        job.steps = 6;
        job.classes = classes;
        const Outcome alone = run(job, {});
        REQUIRE((alone.metrics.find("\"auc\"") != std::string::npos) == (classes == 2));
        REQUIRE((alone.metrics.find("\"top5\"") != std::string::npos) == (classes == 10));
        REQUIRE(run(job, {3}) == alone);
    }
}

namespace {

/// A data set with a sample that makes every number after it non-finite.
class Poisoned : public Dataset {
  public:
    Poisoned(const Dataset& data, int64_t bad) : data_(data), bad_(bad) {}
    int64_t size() const override { return data_.size(); }
    SampleShape shape() const override { return data_.shape(); }
    int classes() const override { return data_.classes(); }
    int32_t label(int64_t i) const override { return data_.label(i); }
    std::string fingerprint() const override { return data_.fingerprint(); }
    int32_t read(int64_t i, std::span<float> pixels) const override {
        const int32_t label = data_.read(i, pixels);
        if (i == bad_) pixels[3] = std::numeric_limits<float>::infinity();
        return label;
    }

  private:
    const Dataset& data_;
    int64_t bad_;
};

}  // namespace

TEST_CASE("a non-finite step stops all ranks alike and names step, shard and sample") {
    set_log(LogLevel::kQuiet, false);
    Job job;
    job.samples = 300;
    job.batch = 40;
    job.shuffle = "none";
    job.optimizer = "sgd";
    const LoadedConfig loaded = config_of(job);
    for (const int world : {1, 3, 4}) {
        std::mutex mutex;
        std::vector<std::string> messages;
        run_thread_world(world, [&](Communicator& comm) {
            const DataSplits clean = open_data(loaded.config);
            DataSplits data = open_data(loaded.config);
            data.train = std::make_unique<Poisoned>(*clean.train, 97);  // step 3: positions 80 … 119; shard 3: 95 … 99
            LoadedConfig own = loaded;
            own.config.device.threads = 1;
            TrainOptions options;
            options.progress.style = ProgressStyle::kNone;
            try {
                train_on(comm, own, data, options);
            } catch (const SharedError& e) {
                const std::scoped_lock lock(mutex);
                REQUIRE(e.kind() == ErrorKind::kNonFinite);
                messages.emplace_back(e.what());
            }
        });
        REQUIRE(messages.size() == static_cast<std::size_t>(world));
        for (const std::string& message : messages) {
            REQUIRE(message == messages.front());
            REQUIRE_THAT(message, Catch::Contains("step 3 ") && Catch::Contains("shard 3 ") &&
                                      Catch::Contains("position 97 (sample 97)"));
            REQUIRE_THAT(message, !Catch::Contains("shard 2"));
        }
    }
}
