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
#include "data/idx_checks.hpp"
#include "data/idx_file.hpp"
#include "data/normalisation.hpp"

namespace lockstep {
namespace {

constexpr size_t kByteValues = 256;
using ByteTable = std::array<float, kByteValues>;

class IdxDataset final : public Dataset {
  public:
    IdxDataset(IdxArray images, const IdxArray& labels, const Config::Data& data)
        : shape_(idx_shape(images)), scales_(channel_scales(data, shape_.channels)), labels_(idx_labels(labels)) {
        check_idx_counts(images, labels);
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

void check_test(const IdxDataset& train, const IdxDataset& test, const DataPaths& paths, size_t label_start,
                size_t label_bytes) {
    check_same_shape(train.shape(), train.path(), test.shape(), test.path());
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
    check_idx_paths("data.train", data.train);
    if (!data.test.empty()) check_idx_paths("data.test", data.test);

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
    check_wanted_shape(train->shape(), train->path(), data.shape);
    train->set_classes(count_classes(train->labels(), data.train.labels));
    if (data.test.empty()) return {std::move(train), nullptr};

    images = files[2].get();
    const IdxArray labels = files[3].get();
    auto test = std::make_unique<IdxDataset>(std::move(images), labels, data);
    check_test(*train, *test, data.test, labels.start, idx_type_bytes(labels.type));
    test->set_classes(train->classes());
    return {std::move(train), std::move(test)};
}

}  // namespace lockstep
