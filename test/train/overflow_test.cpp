// The replay of a step whose samples are all finite, and whose sum is not: no sample is at fault then, and none is
// named.
#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>

#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr float kHuge = 3e38F;  // twice this is infinite

/// Some samples with one huge pixel and the rest 0. With one dense layer a logit is then weight times kHuge, so the
/// softmax is a clean 0 or 1, and each such sample's gradient of the predicted class's weight is kHuge.
class Towering : public Dataset {
  public:
    Towering(const Dataset& data, std::vector<int64_t> tall) : data_(data), tall_(std::move(tall)) {}
    int64_t size() const override { return data_.size(); }
    SampleShape shape() const override { return data_.shape(); }
    int classes() const override { return data_.classes(); }
    int32_t label(int64_t i) const override { return is_tall(i) ? 0 : data_.label(i); }
    std::string fingerprint() const override { return data_.fingerprint(); }
    int32_t read(int64_t i, std::span<float> pixels) const override {
        data_.read(i, pixels);
        if (is_tall(i)) {
            std::fill(pixels.begin(), pixels.end(), 0.0F);
            pixels[5] = kHuge;
        }
        return label(i);
    }

  private:
    bool is_tall(int64_t i) const { return std::find(tall_.begin(), tall_.end(), i) != tall_.end(); }
    const Dataset& data_;
    std::vector<int64_t> tall_;
};

/// What every rank says of a run over such data, each in its place; "" where it trains to the end.
std::vector<std::string> messages(int world, const std::vector<int64_t>& tall) {
    set_log(LogLevel::kQuiet, false);
    Job job;
    job.samples = 300;
    job.batch = 40;  // 8 shards of 5
    job.steps = 3;
    job.shuffle = "none";
    job.optimizer = "sgd";
    LoadedConfig loaded = config_of(job);
    loaded.config.model.hidden = {};
    loaded.config.device.threads = 1;
    // A finite gradient of 3e38 would leave huge weights behind.
    loaded.config.optimizer.lr = 0;
    std::vector<std::string> said(static_cast<std::size_t>(world));
    std::mutex mutex;
    const DataSplits clean = open_data(loaded.config);
    run_thread_world(world, [&](Communicator& comm) {
        DataSplits data;
        data.train = std::make_unique<Towering>(*clean.train, tall);
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        try {
            train_on(comm, loaded, data, options);
        } catch (const SharedError& e) {
            const std::scoped_lock lock(mutex);
            REQUIRE(e.kind() == ErrorKind::kNonFinite);
            said[static_cast<std::size_t>(comm.rank())] = e.what();
        }
    });
    return said;
}

}  // namespace

TEST_CASE("finite samples whose sum overflows within a shard: the shard is named, and no sample") {
    for (const int world : {1, 3}) {
        // Step 2 has positions 40 … 79, shard 6 of it 70 … 74.
        const std::vector<std::string> said = messages(world, {71, 73});
        for (const std::string& message : said) {
            CHECK(message == said.front());
            CHECK_THAT(message, Catch::Contains("step 2 ") && Catch::Contains("shard 6 ") &&
                                    Catch::Contains("fc1.weight") &&
                                    Catch::Contains("every sample alone is finite, their sum is not"));
            CHECK_THAT(message, !Catch::Contains("position"));
        }
    }
}

TEST_CASE("finite shards whose sum overflows: only the sum is at fault") {
    for (const int world : {1, 3, 8}) {
        const std::vector<std::string> said = messages(world, {51, 73});
        for (const std::string& message : said) {
            CHECK(message == said.front());
            CHECK_THAT(message,
                       Catch::Contains("step 2 ") && Catch::Contains("every shard alone is finite, their sum is not"));
            CHECK_THAT(message, !Catch::Contains("position"));
        }
    }
}

TEST_CASE("one such sample alone is no reason to stop") {
    for (const std::string& message : messages(1, {71})) CHECK(message.empty());
}
