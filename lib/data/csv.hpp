// Data sets from CSV files: data.format = "csv".
#pragma once

#include <string>
#include <vector>

#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "data/table_data.hpp"

namespace lockstep {

/// data.train and data.test of a config whose data.format is "csv". The training files are read twice (three times
/// where types are guessed): what the columns are is learned from all of their rows. Of a split larger than `memory`
/// bytes only the places of the rows are kept.
DataSplits open_csv(const Config& config, int64_t memory = kTableMemory);

DataFacts csv_facts(const Config& config, int64_t memory = kTableMemory);

}  // namespace lockstep
