// Data sets from IDX files, held in memory in the files' own element type (Fashion-MNIST: 47 MB and not 188).
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// data.train and data.test of a config whose data.format is "idx". The files are read and unpacked at the same time.
DataSplits open_idx(const Config& config);

/// The same without the pixels.
DataFacts idx_facts(const Config& config);

}  // namespace lockstep
