// From pictures to samples: open_pictures of picture_source.hpp.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/idx_checks.hpp"
#include "data/normalisation.hpp"
#include "data/picture_source.hpp"
#include "data/random_crop.hpp"
#include "io/resize.hpp"

namespace lockstep {
namespace {

constexpr size_t kByteValues = 256;

class PictureDataset final : public Dataset {
  public:
    PictureDataset(std::unique_ptr<PictureSource> source, SampleShape shape, int classes, const Config::Data& data)
        : source_(std::move(source)), shape_(shape), classes_(classes), fingerprint_(source_->fingerprint()) {
        for (const ChannelScale& scale : channel_scales(data, shape.channels)) {
            std::array<float, kByteValues>& table = tables_.emplace_back();
            for (size_t v = 0; v < kByteValues; ++v) table[v] = scale(static_cast<float>(v) / 255.0f);
        }
    }

    int64_t size() const override { return source_->size(); }
    SampleShape shape() const override { return shape_; }
    int classes() const override { return classes_; }
    std::string fingerprint() const override { return fingerprint_; }
    int32_t label(int64_t index) const override { return source_->label(checked(index)); }
    std::vector<std::string> class_names() const override { return source_->class_names(); }
    std::string sample_name(int64_t index) const override { return source_->name(checked(index)); }

    int32_t read(int64_t index, std::span<float> pixels) const override {
        const Picture picture = decoded(index, pixels.size());
        if (picture.height == shape_.height && picture.width == shape_.width) {
            normalise(picture, pixels);
        } else {
            take(picture, {0, 0, picture.height, picture.width}, pixels);
        }
        return source_->label(index);
    }

    int32_t read_crop(int64_t index, const RandomCrop& crop, std::span<float> pixels) const override {
        const Picture picture = decoded(index, pixels.size());
        take(picture, crop.region(picture.height, picture.width), pixels);
        return source_->label(index);
    }

  private:
    int64_t checked(int64_t index) const {
        if (index >= 0 && index < size()) return index;
        fail(ErrorKind::kRuntime, "sample {} was asked of a data set of {}", index, size());
    }

    Picture decoded(int64_t index, size_t values) const {
        if (static_cast<int64_t>(values) != shape_.elements()) {
            fail(ErrorKind::kRuntime, "{} values were asked of a sample of {}", values, shape_.elements());
        }
        Picture picture = source_->picture(checked(index));
        set_channels(picture, shape_.channels);
        return picture;
    }

    void take(const Picture& picture, const PictureRegion& region, std::span<float> pixels) const {
        normalise(resized(picture, region, shape_.height, shape_.width), pixels);
    }

    // 256 possible values: a table holds the results of the three operations, bit for bit.
    void normalise(const Picture& picture, std::span<float> pixels) const {
        if (tables_.size() == 1) {
            for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = tables_[0][picture.pixels[i]];
            return;
        }
        for (size_t i = 0; i < pixels.size();) {
            for (const auto& table : tables_) {
                pixels[i] = table[picture.pixels[i]];
                ++i;
            }
        }
    }

    std::unique_ptr<PictureSource> source_;
    SampleShape shape_;
    int classes_;
    std::vector<std::array<float, kByteValues>> tables_;  // one, or one per channel
    std::string fingerprint_;
};

SampleShape wanted_shape(const std::vector<int64_t>& wanted) {
    constexpr int64_t kMost = 1 << 15;
    const bool good = wanted.size() == 3 && wanted[0] >= 1 && wanted[0] <= kMost && wanted[1] >= 1 &&
                      wanted[1] <= kMost && (wanted[2] == 1 || wanted[2] == 3);
    if (!good) {
        fail(ErrorKind::kUsage,
             "data.shape = [{}]: pictures need [height, width, channels], sides from 1 to {} and 1 or 3 channels",
             fmt::join(wanted, ", "), kMost);
    }
    return {static_cast<int>(wanted[0]), static_cast<int>(wanted[1]), static_cast<int>(wanted[2])};
}

// The first picture's, which all of both splits must have.
SampleShape common_shape(const PictureSource& train, const PictureSource* test) {
    const PictureSize first = train.picture_size(0);
    for (const PictureSource* source : {&train, test}) {
        for (int64_t i = 0; source != nullptr && i < source->size(); ++i) {
            const PictureSize size = source->picture_size(i);
            if (size == first) continue;
            fail(ErrorKind::kUsage,
                 "data.shape: not set, and pictures have several sizes: {} has {} x {} (width x height), {} {} x {}; "
                 "set data.shape = [height, width, channels], to which all are resized",
                 train.name(0), first.width, first.height, source->name(i), size.width, size.height);
        }
    }
    return {first.height, first.width, 3};
}

int classes_of(const PictureSource& train) {
    if (train.classes() > 0) return std::max(2, train.classes());
    std::vector<int32_t> labels(static_cast<size_t>(train.size()));
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = train.label(static_cast<int64_t>(i));
    return count_classes(labels, train.name(0));
}

void check_test_labels(const PictureSource& test, int classes) {
    for (int64_t i = 0; i < test.size(); ++i) {
        if (test.label(i) < classes) continue;
        fail(ErrorKind::kData, "{}: label {} is out of range: the training labels go from 0 to {}", test.name(i),
             test.label(i), classes - 1);
    }
}

struct Opened {
    std::unique_ptr<PictureSource> train;
    std::unique_ptr<PictureSource> test;  // may be null
    DataFacts facts;
};

Opened open_sources(const Config& config, const OpenPictures& open) {
    const Config::Data& data = config.data;
    Opened opened;
    opened.train = open(config, "data.train", data.train.paths, nullptr);
    if (!data.test.empty()) opened.test = open(config, "data.test", data.test.paths, opened.train.get());
    DataFacts& facts = opened.facts;
    facts.samples = opened.train->size();
    facts.shape = data.shape.empty() ? common_shape(*opened.train, opened.test.get()) : wanted_shape(data.shape);
    facts.classes = classes_of(*opened.train);
    facts.class_names = opened.train->class_names();
    facts.memory_bytes = opened.train->memory_bytes();
    if (opened.test) {
        check_test_labels(*opened.test, facts.classes);
        facts.test_samples = opened.test->size();
        facts.memory_bytes += opened.test->memory_bytes();
    }
    return opened;
}

}  // namespace

std::unique_ptr<Dataset> picture_dataset(std::unique_ptr<PictureSource> source, SampleShape shape, int classes,
                                         const Config& config) {
    return std::make_unique<PictureDataset>(std::move(source), shape, classes, config.data);
}

DataSplits open_pictures(const Config& config, const OpenPictures& open) {
    Opened opened = open_sources(config, open);
    const auto split = [&](std::unique_ptr<PictureSource> source) -> std::unique_ptr<Dataset> {
        if (!source) return nullptr;
        return picture_dataset(std::move(source), opened.facts.shape, opened.facts.classes, config);
    };
    DataSplits splits;
    splits.train = split(std::move(opened.train));
    splits.test = split(std::move(opened.test));
    return splits;
}

DataFacts picture_facts(const Config& config, const OpenPictures& open) {
    return open_sources(config, open).facts;
}

}  // namespace lockstep
