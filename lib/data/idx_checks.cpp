#include "data/idx_checks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/log.hpp"
#include "io/source_files.hpp"

namespace lockstep {
namespace {

std::string shape_text(const SampleShape& s) {
    return fmt::format("[{}, {}, {}]", s.height, s.width, s.channels);
}

}  // namespace

void check_idx_paths(const char* key, const DataPaths& paths) {
    if (paths.empty()) fail(ErrorKind::kUsage, "{}: not set; idx needs {{ images = \"…\", labels = \"…\" }}", key);
    if (paths.images.empty() || paths.labels.empty()) {
        fail(ErrorKind::kUsage, "{}: {} is not set; idx needs {{ images = \"…\", labels = \"…\" }}", key,
             paths.images.empty() ? "images" : "labels");
    }
    check_path(paths.images, key);
    check_path(paths.labels, key);
}

SampleShape idx_shape(const IdxArray& images) {
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

void check_idx_counts(const IdxArray& images, const IdxArray& labels) {
    if (images.extents[0] == labels.extents[0]) return;
    fail(ErrorKind::kData, "{} holds {} images, but {} holds {} labels (counts at 0x4); the two do not belong together",
         images.path, images.extents[0], labels.path, labels.extents[0]);
}

void check_wanted_shape(SampleShape shape, const std::string& path, const std::vector<int64_t>& wanted) {
    if (wanted.empty() || wanted == std::vector<int64_t>{shape.height, shape.width, shape.channels}) return;
    fail(ErrorKind::kUsage, "data.shape = [{}] differs from {} of {}; resizing is not built yet: remove data.shape",
         fmt::join(wanted, ", "), shape_text(shape), path);
}

void check_same_shape(SampleShape train, const std::string& train_path, SampleShape test,
                      const std::string& test_path) {
    if (train == test) return;
    fail(ErrorKind::kData, "{} has samples of {}, but {} of {}; training and test data must agree", train_path,
         shape_text(train), test_path, shape_text(test));
}

int count_classes(std::span<const int32_t> labels, const std::string& path) {
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

}  // namespace lockstep
