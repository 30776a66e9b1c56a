#include "data/npz.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/idx_checks.hpp"
#include "data/normalisation.hpp"
#include "data/npz_array.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

constexpr double kMostClasses = 1 << 20;

/// The two arrays of a split, checked against each other.
struct Arrays {
    NpyArray x, y;
    SampleShape shape;
    std::string fingerprint;
};

SampleShape shape_of(const NpyArray& x, const std::vector<int64_t>& wanted) {
    const std::vector<int64_t>& e = x.header().shape;
    if (e.empty() || e.size() > 4) {
        fail(ErrorKind::kData,
             "{}: shape {}; samples have one to four dimensions: (n,), (n, features), (n, h, w) or "
             "(n, h, w, c)",
             x.place(), x.header().shape_text());
    }
    for (const int64_t extent : e) {
        if (extent < 1) fail(ErrorKind::kData, "{}: shape {}: nothing in it", x.place(), x.header().shape_text());
    }
    if (x.row_elements() > std::numeric_limits<int>::max()) {
        fail(ErrorKind::kData, "{}: shape {}: a sample has more than 2^31 - 1 values", x.place(),
             x.header().shape_text());
    }
    if (!wanted.empty()) {
        const int64_t values = x.row_elements();
        if (wanted[0] <= values && wanted[1] <= values / wanted[0] && wanted[0] * wanted[1] * wanted[2] == values) {
            return {static_cast<int>(wanted[0]), static_cast<int>(wanted[1]), static_cast<int>(wanted[2])};
        }
        fail(ErrorKind::kUsage, "data.shape = [{}] has another number of values than a sample of {}, {}",
             fmt::join(wanted, ", "), x.place(), x.header().shape_text());
    }
    const auto extent = [&](size_t d) { return d < e.size() ? static_cast<int>(e[d]) : 1; };
    if (e.size() <= 2) return {1, 1, extent(1)};
    return {extent(1), extent(2), extent(3)};
}

std::unique_ptr<Arrays> open_arrays(const Config& config, const DataPaths& paths, const char* key, int64_t memory) {
    const Config::Data& data = config.data;
    std::vector<std::string> files;
    if (!paths.images.empty() && !paths.labels.empty()) {
        files = {paths.images, paths.labels};
        for (const std::string& file : files) check_path(file, key);
    } else if (paths.paths.size() == 1) {
        files = source_files(paths.paths, key);
    }
    if (files.empty() || (files.size() > 1 && paths.images.empty())) {
        fail(ErrorKind::kUsage, "{}: npz needs one \"….npz\", or {{ images = \"x.npy\", labels = \"y.npy\" }}", key);
    }
    const std::string& cache = config.device.cache;
    auto arrays = std::make_unique<Arrays>(Arrays{
        NpyArray(files.front(), data.x, cache, memory), NpyArray(files.back(), data.y, cache, memory), {}, "npz"});
    const NpyArray &x = arrays->x, &y = arrays->y;
    arrays->shape = shape_of(x, data.shape);
    if (y.header().shape.empty() || y.row_elements() != 1) {
        fail(ErrorKind::kData, "{}: shape {}; one label for each sample is needed: (n,) or (n, 1)", y.place(),
             y.header().shape_text());
    }
    if (x.rows() != y.rows()) {
        fail(ErrorKind::kData, "{} holds {} samples, but {} holds {} labels; the two do not belong together", x.place(),
             x.rows(), y.place(), y.rows());
    }
    for (const std::string& file : files) arrays->fingerprint += fmt::format(", {}", file_fingerprint(file));
    if (paths.images.empty()) arrays->fingerprint += fmt::format(", {} {}", data.x, data.y);
    return arrays;
}

struct Labels {
    std::vector<int32_t> values;
    bool regression = false;
    int classes = 0;
};

bool are_targets(const std::vector<double>& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [](double v) { return v != std::floor(v); });
}

/// `known`: of the training data, for the test split.
Labels read_labels(const Config& config, const NpyArray& y, const Labels* known) {
    const std::vector<double> numbers = y.numbers();
    Labels labels;
    labels.regression = known != nullptr
                            ? known->regression
                            : config.train.loss == "mse" || (is_real(y.header().type) && are_targets(numbers));
    const double most = known != nullptr ? known->classes : kMostClasses;
    for (size_t i = 0; i < numbers.size(); ++i) {
        const auto target = static_cast<float>(numbers[i]);
        if (labels.regression) {
            if (!std::isfinite(target))
                fail(ErrorKind::kData, "{}: target {} of sample {} is not finite", y.place(), numbers[i], i);
            labels.values.push_back(std::bit_cast<int32_t>(target));
            continue;
        }
        if (!(numbers[i] >= 0 && numbers[i] < most && numbers[i] == std::floor(numbers[i]))) {
            fail(ErrorKind::kData,
                 "{}: label {} of sample {} is out of range: a whole number from 0 to {} is expected{}", y.place(),
                 numbers[i], i, most - 1,
                 known == nullptr ? " (train.loss = \"mse\" learns other numbers)" : "; so the training labels are");
        }
        labels.values.push_back(static_cast<int32_t>(numbers[i]));
    }
    if (labels.regression) return labels;
    labels.classes = known != nullptr ? known->classes : count_classes(labels.values, y.place());
    return labels;
}

std::unique_ptr<Dataset> dataset(const Config& config, std::shared_ptr<Arrays> arrays, Labels labels) {
    auto scales = channel_scales(config.data, arrays->shape.channels);
    const bool pixels = arrays->x.header().type == NpyType::kU8;
    TableSplit facts{arrays->x.rows(), arrays->shape, labels.classes, {}, arrays->fingerprint};
    auto values_of = std::make_shared<std::vector<int32_t>>(std::move(labels.values));
    return made_table(std::move(facts), [arrays = std::move(arrays), scales = std::move(scales), pixels, values_of](
                                            int64_t row, std::span<float> values) {
        arrays->x.row(row, values);
        for (size_t i = 0; i < values.size(); ++i) {
            const float value = pixels ? values[i] / 255.0F : values[i];
            values[i] = scales[scales.size() == 1 ? 0 : i % scales.size()](value);
        }
        return (*values_of)[static_cast<size_t>(row)];
    });
}

struct Opened {
    std::shared_ptr<Arrays> train, test;
    Labels train_labels, test_labels;
};

Opened open_both(const Config& config, int64_t memory) {
    Opened opened;
    opened.train = open_arrays(config, config.data.train, "data.train", memory);
    opened.train_labels = read_labels(config, opened.train->y, nullptr);
    if (config.data.test.empty()) return opened;
    opened.test = open_arrays(config, config.data.test, "data.test", memory);
    check_same_shape(opened.train->shape, opened.train->x.place(), opened.test->shape, opened.test->x.place());
    opened.test_labels = read_labels(config, opened.test->y, &opened.train_labels);
    return opened;
}

int64_t bytes_of(const Arrays& arrays) {
    return arrays.x.memory_bytes() + arrays.y.memory_bytes() + arrays.y.rows() * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace

DataSplits open_npz(const Config& config, int64_t memory) {
    Opened opened = open_both(config, memory);
    DataSplits splits;
    splits.train = dataset(config, std::move(opened.train), std::move(opened.train_labels));
    if (opened.test) splits.test = dataset(config, std::move(opened.test), std::move(opened.test_labels));
    return splits;
}

DataFacts npz_facts(const Config& config, int64_t memory) {
    const Opened opened = open_both(config, memory);
    DataFacts facts;
    facts.samples = opened.train->x.rows();
    facts.shape = opened.train->shape;
    facts.classes = opened.train_labels.classes;
    facts.memory_bytes = bytes_of(*opened.train);
    facts.notes.push_back(
        fmt::format("x: {} of {}", opened.train->x.header().shape_text(), npy_name(opened.train->x.header().type)));
    facts.notes.push_back(opened.train_labels.regression ? std::string("y: numbers (regression)")
                                                         : fmt::format("y: {} classes", facts.classes));
    if (!opened.test) return facts;
    facts.test_samples = opened.test->x.rows();
    facts.memory_bytes += bytes_of(*opened.test);
    return facts;
}

}  // namespace lockstep
