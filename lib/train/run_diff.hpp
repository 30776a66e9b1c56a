// Where two runs part: the first step, the earliest stage in it and the tensor; what differs in config, data and place;
// and by how much the weights differ afterwards. What `lockstep diff` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/key_table.hpp"
#include "train/run_record.hpp"
#include "train/tensor_diff.hpp"

namespace lockstep {

/// Stages in the order of a step: "data", "forward", "gradient", "reduction", "optimizer". "weights" are those that a
/// run starts from, or those of a file where nothing tells the stage; "evaluation" and "length" concern no step's work.
struct FirstDifference {
    int64_t step = 0;  // of the update; 0: before the first
    std::string stage;
    std::string tensor;                // or "indices", "samples", "loss", "lr"; empty for a length
    std::vector<std::string> details;  // a sentence each
};

struct FactDifference {
    std::string name;
    std::string left, right;
};

struct RunDiff {
    std::optional<FirstDifference> first;  // none: the runs are equal as far as both go
    std::vector<KeyDifference> keys;       // those that can change a bit first
    std::vector<FactDifference> facts;     // version, arithmetic, data, ranks, hosts, devices
    std::vector<std::string> notes;        // on what was compared, and what would tell more
    std::optional<WeightsDiff> weights;    // after the first difference, where files of both tell
};

/// Throws what read_run_record throws, and kData where the two have nothing that could be compared: that they are equal
/// would be a claim about nothing.
RunDiff diff_runs(const std::string& left, const std::string& right);

/// The first line is `equal` or `differ at step S: STAGE TENSOR`; then the keys that differ, one a line.
std::string diff_text(const RunDiff& diff);
std::string diff_json(const RunDiff& diff);

/// What both traces tell of, ascending: updates, before them the weights that the later one starts from where the other
/// knows them too.
std::vector<int64_t> common_moments(const TraceFile& left, const TraceFile& right);

/// By the traces alone. `other_order`: between the two, sums may be added in another order for reasons of config
/// (batch.shards, reduce.algorithm), by which a loss may differ in its last bits without anything else behind it.
std::optional<FirstDifference> diff_traces(const TraceFile& left, const TraceFile& right, bool other_order);

/// By metrics.jsonl, checkpoints and final weights, before the step that the traces tell, if they tell any. `compared`
/// counts what both have of these.
std::optional<FirstDifference> diff_files(const RunRecord& left, const RunRecord& right, std::optional<int64_t> before,
                                          int64_t& compared);

}  // namespace lockstep
