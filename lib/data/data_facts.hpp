// What a data set is, told without reading it whole: enough for `plan`, which works before any work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/column.hpp"
#include "core/shape.hpp"

namespace lockstep {

struct Config;

struct DataFacts {
    int64_t samples = 0;       // of the training split
    int64_t test_samples = 0;  // 0: no test split
    SampleShape shape;
    int classes = 0;                            // 0: a regression
    int64_t memory_bytes = 0;                   // that every rank holds of both splits while it trains
    std::vector<Column> columns = {};           // of a table
    std::vector<std::string> notes = {};        // what was taken for what: a line each
    int64_t validation_samples = 0;             // held out of the training split by data.validation
    std::vector<std::string> class_names = {};  // of labels 0, 1, …, where the format names them
};

/// The facts of what open_data(config) would open. Of files, headers and labels are read, never the pixels; what is
/// wrong with those is told as open_data tells it.
DataFacts data_facts(const Config& config);

}  // namespace lockstep
