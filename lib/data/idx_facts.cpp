// The facts of IDX data: headers of the images, labels whole (they say how many classes there are). Unpacking
// Fashion-MNIST takes a third of a second, this a few milliseconds.
#include "config/config.hpp"
#include "data/idx.hpp"
#include "data/idx_checks.hpp"

namespace lockstep {
namespace {

// What IdxDataset keeps: the unpacked file of images, and the labels as numbers.
int64_t kept_bytes(const IdxArray& images) {
    auto elements = static_cast<int64_t>(idx_type_bytes(images.type));
    for (const int64_t extent : images.extents) elements *= extent;
    return static_cast<int64_t>(images.start) + elements + images.extents[0] * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace

DataFacts idx_facts(const Config& config) {
    const Config::Data& data = config.data;
    check_idx_paths("data.train", data.train);
    if (!data.test.empty()) check_idx_paths("data.test", data.test);

    const IdxArray images = read_idx_header(data.train.images);
    const IdxArray labels = read_idx(data.train.labels);
    DataFacts facts;
    facts.shape = idx_shape(images);
    const std::vector<int32_t> values = idx_labels(labels);
    check_idx_counts(images, labels);
    check_wanted_shape(facts.shape, images.path, data.shape);
    facts.samples = images.extents[0];
    facts.classes = count_classes(values, labels.path);
    facts.memory_bytes = kept_bytes(images);
    if (data.test.empty()) return facts;

    const IdxArray test_images = read_idx_header(data.test.images);
    const SampleShape test_shape = idx_shape(test_images);
    check_idx_counts(test_images, read_idx_header(data.test.labels));
    check_same_shape(facts.shape, images.path, test_shape, test_images.path);
    facts.test_samples = test_images.extents[0];
    facts.memory_bytes += kept_bytes(test_images);
    return facts;
}

}  // namespace lockstep
