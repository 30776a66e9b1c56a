// What the headers and labels of IDX files say about a data set, and what must be true of them before they are one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "core/shape.hpp"
#include "data/idx_file.hpp"

namespace lockstep {

/// kUsage where data.train or data.test (`key`) lacks one of the two paths that idx needs.
void check_idx_paths(const char* key, const DataPaths& paths);

/// The shape of one sample. kData for extents that are no images.
SampleShape idx_shape(const IdxArray& images);

/// kData where the two files do not hold the same number of samples.
void check_idx_counts(const IdxArray& images, const IdxArray& labels);

/// kUsage where data.shape (`wanted`, empty: any) differs from what `path` holds.
void check_wanted_shape(SampleShape shape, const std::string& path, const std::vector<int64_t>& wanted);

/// kData where training and test samples have different shapes.
void check_same_shape(SampleShape train, const std::string& train_path, SampleShape test, const std::string& test_path);

/// The training labels say how many classes there are. A stray label (255 for "unknown") would make as many of them:
/// warns where fewer than half occur.
int count_classes(std::span<const int32_t> labels, const std::string& path);

}  // namespace lockstep
