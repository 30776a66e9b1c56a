// What [[data.columns]] say: which columns of a table are read, and as what. Without a word the types are guessed from
// the training data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

enum class ColumnType { kGuess, kNumeric, kCategorical, kBucket, kCross, kLabel, kTarget, kSkip };

/// What stands for a value that is missing.
enum class MissingPolicy {
    kUsual,   // kMean of numbers; kOwn of categories, where the training data have any
    kOwn,     // a category of its own, the last
    kNone,    // no category (-1)
    kMean,    // the mean of the training data
    kFill,    // the number `fill`
    kRefuse,  // an error
};

struct ColumnSpec {
    std::string name;
    ColumnType type = ColumnType::kGuess;
    bool guessed = false;                 // the type is not from the config
    std::vector<std::string> of;          // bucket, cross and second readings: columns that it is made of
    std::vector<std::string> vocabulary;  // categorical, label; empty: the training data's values
    int64_t hash = 0;                     // categorical, cross: into so many; 0: a vocabulary
    std::vector<double> boundaries;       // bucket
    bool standard = false;                // numeric, target: mean and std of the training data
    double mean = 0, std = 1;
    MissingPolicy missing = MissingPolicy::kUsual;
    double fill = 0;
    std::string strip;  // characters taken off the end of a field
    int embedding = 0;
    bool wide = true, deep = true;
    std::string origin;  // "exp.toml:12:1"

    bool derived() const { return !of.empty(); }
};

std::string_view type_name(ColumnType type);

/// One entry for each table, in order. kUsage, with its place in the config, for what does not fit together.
std::vector<ColumnSpec> column_specs(const std::vector<ConfigTable>& tables);

/// All columns of a file, to be guessed; `label_column` (empty: the last one) is the label.
std::vector<ColumnSpec> guessed_specs(const std::vector<std::string>& names, const std::string& label_column);

}  // namespace lockstep
