// Runs on files of pictures: the same bytes at any number of ranks and of reading threads, with every augmentation on,
// and through a stop and a resume.
#include <atomic>
#include <catch2/catch.hpp>

#include "io/temp_folder.hpp"
#include "train/journeys.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kFiles = LOCKSTEP_DATA_FILES;

struct Format {
    std::string name;
    std::string model;
    std::vector<std::string> train, test;
    std::vector<int64_t> shape;
};

const std::vector<Format> kFormats{
    {"cifar", "lenet", {kFiles + "/pictures/cifar10_test_first20.bin"}, {}, {}},
    {"cifar", "mlp", {kFiles + "/pictures/cifar100_test_first20.bin"}, {}, {}},
    {"image_folder", "mlp", {kFiles + "/pictures/cifar10_png"}, {kFiles + "/pictures/cifar10_png"}, {16, 12, 3}},
    {"tfrecord",
     "mlp",
     {kFiles + "/tfrecord/train-00000-of-00008", kFiles + "/tfrecord/train-00001-of-00008"},
     {kFiles + "/tfrecord/validation-00000-of-00002"},
     {12, 12, 3}},
};

Config config_of(const Format& format, const TempFolder& folder) {
    Config config;
    config.data.format = format.name;
    config.data.train.paths = format.train;
    config.data.test.paths = format.test;
    config.data.shape = format.shape;
    config.data.mean = {0.4, 0.5, 0.6};
    config.data.std = {0.25};
    config.augment.pad_crop = 2;
    config.augment.flip = config.augment.resized_crop = true;
    config.augment.brightness = config.augment.contrast = config.augment.saturation = 0.3;
    config.augment.cutout = 3;
    config.model.name = format.model;
    config.model.hidden = {13};
    config.model.channels = {3, 4};
    config.batch.size = 13;
    config.train.steps = 7;
    config.device.threads = 1;
    config.device.backend = "cpu";
    config.device.cache = folder / "cache";
    return config;
}

/// Ranks read with different numbers of threads.
void other_readers(LoadedConfig& own, TrainOptions&, int rank) {
    own.config.device.input_threads = 1 + rank % 3;
}

Outcome train(const Config& config, const DataSplits& data, int world) {
    return outcome_on(config, data, world, {}, other_readers);
}

/// The same samples, but for a last bit that says how many were read before: what a generator that is advanced by each
/// call would do.
class Sequential final : public Dataset {
  public:
    explicit Sequential(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}
    int64_t size() const override { return inner_->size(); }
    SampleShape shape() const override { return inner_->shape(); }
    int classes() const override { return inner_->classes(); }
    int32_t label(int64_t index) const override { return inner_->label(index); }
    std::string fingerprint() const override { return inner_->fingerprint(); }
    int32_t read(int64_t index, std::span<float> pixels) const override {
        const int32_t label = inner_->read(index, pixels);
        pixels[0] += static_cast<float>(calls_++ % 64) / 64.0f;
        return label;
    }

  private:
    std::unique_ptr<Dataset> inner_;
    mutable std::atomic<int> calls_{0};
};

}  // namespace

TEST_CASE("pictures of every format train to the same bytes on 1, 2, 3, 4 and 8 ranks, each varied and shuffled") {
    for (const Format& format : kFormats) {
        INFO(format.name);
        const TempFolder folder;
        Config config = config_of(format, folder);
        for (const char* shuffle : {"full", "block"}) {
            config.data.shuffle = shuffle;
            config.data.block = 8;
            const DataSplits data = open_data(config);
            const Outcome expected = train(config, data, 1);
            for (const int world : {2, 3, 4, 8}) {
                INFO(shuffle << ", " << world << " ranks");
                CHECK(train(config, data, world) == expected);
            }
            Config plain = config;
            plain.augment = {};
            CHECK(train(plain, data, 1).sha256 != expected.sha256);
        }
    }
}

TEST_CASE("a run that stops in the middle of an epoch goes on with the same samples, varied alike, at any world") {
    unsigned seed = 1;
    for (const Format& format : kFormats) {
        INFO(format.name);
        const TempFolder folder;
        Config config = config_of(format, folder);
        config.data.shuffle = seed % 2 == 0 ? "block" : "full";
        config.data.block = 8;
        check_journeys(config, open_data(config), kEveryWorld, seed++, other_readers);
    }
}

TEST_CASE("the twin: samples that depend on how many were read before give other bytes on two ranks") {
    const TempFolder folder;
    Config config = config_of(kFormats[0], folder);
    config.augment = {};
    const auto with = [&](int world) {
        DataSplits data = open_data(config);
        data.train = std::make_unique<Sequential>(std::move(data.train));
        return train(config, data, world);
    };
    CHECK(with(1).sha256 != with(2).sha256);
}
