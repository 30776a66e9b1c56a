#include "data/idx.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <limits>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "data/idx_file.hpp"
#include "data/normalisation.hpp"

namespace lockstep {
namespace {

constexpr size_t kByteValues = 256;
using ByteTable = std::array<float, kByteValues>;

std::string shape_text(const SampleShape& s) {
    return fmt::format("[{}, {}, {}]", s.height, s.width, s.channels);
}

SampleShape shape_of(const IdxArray& images) {
    const auto& e = images.extents;
    if (e.size() < 2 || e.size() > 4) {
        fail(ErrorKind::kData,
             "{}: images have 2 to 4 dimensions (samples, then height, width, channels), this file has {} ({}, DD at "
             "0x3){}",
             images.path, e.size(), images.extents_text(), e.size() == 1 ? "; are images and labels swapped?" : "");
    }
    for (size_t d = 0; d < e.size(); ++d) {
        if (e[d] == 0 || e[d] > std::numeric_limits<int>::max()) {
            fail(ErrorKind::kData, "{}: {} is {} ({} at 0x{:x}); from 1 to {} is expected", images.path,
                 d == 0 ? "the number of samples" : "an extent of the images", e[d], images.extents_text(), 4 + 4 * d,
                 std::numeric_limits<int>::max());
        }
    }
    const auto extent = [&](size_t d) { return static_cast<int>(e[d]); };
    if (e.size() == 2) return {1, 1, extent(1)};
    return {extent(1), extent(2), e.size() == 4 ? extent(3) : 1};
}

class IdxDataset final : public Dataset {
  public:
    IdxDataset(IdxArray images, const IdxArray& labels, const Config::Data& data)
        : shape_(shape_of(images)), scales_(channel_scales(data, shape_.channels)), labels_(idx_labels(labels)) {
        if (images.extents[0] != labels.extents[0]) {
            fail(ErrorKind::kData,
                 "{} holds {} images, but {} holds {} labels (counts at 0x4); the two do not belong together",
                 images.path, images.extents[0], labels.path, labels.extents[0]);
        }
        fingerprint_ = fmt::format("idx {} {} {} labels {} {}", idx_type_name(images.type), images.extents_text(),
                                   hex16(images.hash), idx_type_name(labels.type), hex16(labels.hash));
        for (const ChannelScale& scale : images.type == IdxType::kU8 ? scales_ : std::vector<ChannelScale>()) {
            ByteTable& table = tables_.emplace_back();
            for (size_t v = 0; v < kByteValues; ++v) table[v] = scale(static_cast<float>(v) / 255.0f);
        }
        images_ = std::move(images);
    }

    int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
    SampleShape shape() const override { return shape_; }
    int classes() const override { return classes_; }
    int32_t label(int64_t index) const override { return labels_[checked(index)]; }
    std::string fingerprint() const override { return fingerprint_; }

    int32_t read(int64_t index, std::span<float> pixels) const override {
        const size_t row = checked(index);
        const auto count = static_cast<size_t>(shape_.elements());
        if (pixels.size() != count) {
            fail(ErrorKind::kRuntime, "{} values were asked of a sample of {}", pixels.size(), count);
        }
        const std::byte* from = images_.elements() + row * count * idx_type_bytes(images_.type);
        switch (images_.type) {
            case IdxType::kU8:
                look_up(from, pixels);
                break;
            case IdxType::kS8:
                convert<int8_t>(from, pixels);
                break;
            case IdxType::kI16:
                convert<int16_t>(from, pixels);
                break;
            case IdxType::kI32:
                convert<int32_t>(from, pixels);
                break;
            case IdxType::kF32:
                convert<float>(from, pixels);
                break;
            case IdxType::kF64:
                convert<double>(from, pixels);
                break;
        }
        return labels_[row];
    }

    const std::string& path() const { return images_.path; }
    const std::vector<int32_t>& labels() const { return labels_; }
    void set_classes(int classes) { classes_ = classes; }

  private:
    size_t checked(int64_t index) const {
        if (index < 0 || index >= size())
            fail(ErrorKind::kRuntime, "sample {} was asked of a data set of {}", index, size());
        return static_cast<size_t>(index);
    }

    // 256 possible values: a table holds the results of the three operations, bit for bit.
    void look_up(const std::byte* from, std::span<float> pixels) const {
        if (tables_.size() == 1) {
            const ByteTable& table = tables_[0];
            for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = table[std::to_integer<size_t>(from[i])];
            return;
        }
        for (size_t i = 0; i < pixels.size();) {
            for (const ByteTable& table : tables_) {
                pixels[i] = table[std::to_integer<size_t>(from[i])];
                ++i;
            }
        }
    }

    template <class T>
    void convert(const std::byte* from, std::span<float> pixels) const {
        for (size_t i = 0; i < pixels.size(); ++i) {
            T value;
            std::memcpy(&value, from + i * sizeof(T), sizeof(T));  // elements lie at any address
            pixels[i] = scales_[scales_.size() == 1 ? 0 : i % scales_.size()](static_cast<float>(value));
        }
    }

    SampleShape shape_;
    std::vector<ChannelScale> scales_;  // one, or one per channel
    std::vector<ByteTable> tables_;     // of a u8 file: one for each scale
    std::vector<int32_t> labels_;
    IdxArray images_;
    std::string fingerprint_;
    int classes_ = 2;
};

void check_paths(const char* key, const DataPaths& paths) {
    if (paths.images.empty() || paths.labels.empty()) {
        fail(ErrorKind::kUsage, "{}: {} is not set; idx needs {{ images = \"…\", labels = \"…\" }}", key,
             paths.images.empty() ? "images" : "labels");
    }
}

void check_shape(const IdxDataset& set, const std::vector<int64_t>& wanted) {
    const SampleShape s = set.shape();
    if (wanted.empty() || wanted == std::vector<int64_t>{s.height, s.width, s.channels}) return;
    fail(ErrorKind::kUsage, "data.shape = [{}] differs from {} of {}; resizing is not built yet: remove data.shape",
         fmt::join(wanted, ", "), shape_text(s), set.path());
}

// The training labels say how many classes there are. A stray label (255 for "unknown") would make as many of them.
int count_classes(const IdxDataset& train, const std::string& path) {
    const auto& labels = train.labels();
    const int32_t largest = *std::max_element(labels.begin(), labels.end());
    std::vector<bool> occurs(static_cast<size_t>(largest) + 1);
    for (const int32_t label : labels) occurs[static_cast<size_t>(label)] = true;
    const auto distinct = std::count(occurs.begin(), occurs.end(), true);
    const int classes = std::max(2, largest + 1);
    if (2 * distinct < classes) {
        warn("{}: the largest label {} makes {} classes, of which {} occur; is it meant?", path, largest, classes,
             distinct);
    }
    return classes;
}

void check_test(const IdxDataset& train, const IdxDataset& test, const DataPaths& paths, size_t label_start,
                size_t label_bytes) {
    if (train.shape() != test.shape()) {
        fail(ErrorKind::kData, "{} has samples of {}, but {} of {}; training and test data must agree", train.path(),
             shape_text(train.shape()), test.path(), shape_text(test.shape()));
    }
    for (size_t i = 0; i < test.labels().size(); ++i) {
        if (test.labels()[i] < train.classes()) continue;
        fail(ErrorKind::kData,
             "{}: label {} of sample {} at 0x{:x} is out of range: the training labels go from 0 to {}", paths.labels,
             test.labels()[i], i, label_start + i * label_bytes, train.classes() - 1);
    }
}

// Started at once; without a thread to be had, the file is read when it is asked for.
std::future<IdxArray> start_reading(const std::string& path) {
    return std::async(std::launch::async | std::launch::deferred, [path] { return read_idx(path); });
}

}  // namespace

DataSplits open_idx(const Config& config) {
    const Config::Data& data = config.data;
    check_paths("data.train", data.train);
    if (!data.test.empty()) check_paths("data.test", data.test);

    std::array<std::future<IdxArray>, 4>
        files;  // asked for in this order, so that one fault among several is told always
    files[0] = start_reading(data.train.images);
    files[1] = start_reading(data.train.labels);
    if (!data.test.empty()) {
        files[2] = start_reading(data.test.images);
        files[3] = start_reading(data.test.labels);
    }
    IdxArray images = files[0].get();
    auto train = std::make_unique<IdxDataset>(std::move(images), files[1].get(), data);
    check_shape(*train, data.shape);
    train->set_classes(count_classes(*train, data.train.labels));
    if (data.test.empty()) return {std::move(train), nullptr};

    images = files[2].get();
    const IdxArray labels = files[3].get();
    auto test = std::make_unique<IdxDataset>(std::move(images), labels, data);
    check_test(*train, *test, data.test, labels.start, idx_type_bytes(labels.type));
    test->set_classes(train->classes());
    return {std::move(train), std::move(test)};
}

}  // namespace lockstep
