// A scheme's outcome beside Lockstep's on the same config, and what each of its rules does to it alone.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "data/dataset.hpp"
#include "explain/worker_run.hpp"

namespace lockstep {

struct Comparison {
    struct Row {
        std::string name, why;
        RunOutcome outcome;
    };
    Row lockstep;                   // the trainer's own run
    std::vector<int> worlds;        // numbers of ranks that it was trained on
    std::string sha256;             // of its weights, the same in all of them
    std::vector<Row> causes;        // each alone
    Row scheme;                     // all together
    std::vector<std::string> idle;  // rules that cannot matter here, and why
    std::string evaluated;          // "test", or without test data "validation", or without any "training"
};

/// Trains as often as there are rules, and once for each of the worlds 1 and W. Throws kMismatch if those differ.
Comparison compare(const Facts& facts, const LoadedConfig& loaded, const DataSplits& data);

std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);  // one line

}  // namespace lockstep
