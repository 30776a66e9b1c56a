// Data out of nothing: random pixels, labelled by a fixed random teacher, so that loss really falls and no file is
// needed.
#pragma once

#include <cstdint>
#include <memory>

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// Sets up to this size are made once and kept; of larger ones each sample is made when it is read. Same values.
inline constexpr int64_t kSyntheticMemory = int64_t{256} << 20;

/// data.samples, data.test_samples (0: no test split), data.classes, data.shape ([28, 28, 1] when empty), data.mean and
/// data.std of a config whose data.format is "synthetic". The test samples go on where the training samples end.
DataSplits open_synthetic(const Config& config, int64_t memory = kSyntheticMemory);

/// The same, made of the config alone.
DataFacts synthetic_facts(const Config& config, int64_t memory = kSyntheticMemory);

}  // namespace lockstep
