// A run directory as `diff` reads it: what its files say of the run, whether it is done or was cut short.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "train/trace_file.hpp"

namespace lockstep {

/// A line of metrics.jsonl without "wall": its other fields as they are written, by name.
struct RunEvent {
    int64_t step = 0;
    std::map<std::string, std::string> fields;
};

struct RunRecord {
    std::string path;
    Config config;
    // run.json; empty where the run has none:
    std::string version, arithmetic;
    int world = 0;  // 0: unknown
    std::vector<std::string> hosts, devices;
    // Fingerprints, of the newest checkpoint or of the trace; empty where unknown:
    std::string train_data, test_data;
    std::vector<RunEvent> steps;        // ascending
    std::vector<RunEvent> evaluations;  // ascending
    std::optional<RunEvent> end;        // of a run that has done all its steps
    std::optional<TraceFile> trace;
    std::vector<int64_t> checkpoints;  // their steps, ascending

    /// Updates that it is known to have done.
    int64_t last_step() const;
};

/// Throws kUsage for what is no run directory, kData naming the file for a damaged one.
RunRecord read_run_record(const std::string& path);

}  // namespace lockstep
