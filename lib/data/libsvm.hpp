// Data sets from LIBSVM (SVMlight) files: data.format = "libsvm". A sample has a value for each index.
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "data/table_data.hpp"

namespace lockstep {

/// Labels that are whole numbers are classes, numbered from 0 in their order in the training data (-1 and 1: 0 and 1);
/// others, and all with train.loss = "mse", are targets of a regression. Indices start at 1, or at 0 where the training
/// data have an index 0. Of a split larger than `memory` bytes only the places of the rows are kept.
DataSplits open_libsvm(const Config& config, int64_t memory = kTableMemory);

DataFacts libsvm_facts(const Config& config, int64_t memory = kTableMemory);

}  // namespace lockstep
