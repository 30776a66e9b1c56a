// Checkpoints: folders step-00000469/{model,optimizer}.safetensors + state.json that are complete or absent, hold
// nothing per rank, and are readable at any number of ranks. Rank 0 alone reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "optim/loss_scale.hpp"
#include "train/history.hpp"
#include "train/metrics.hpp"

namespace lockstep {

/// What state.json holds beside the two tensor files.
struct CheckpointState {
    std::string version;      // of Lockstep
    std::string arithmetic;   // numeric fingerprint
    std::string train_data;   // fingerprints of the data's contents
    std::string test_data;    // empty without a test split
    int64_t step = 0;         // updates done
    int64_t total_steps = 0;  // of the run that wrote it
    Config config;
    // metrics.jsonl: its length before the lines of this step, and these lines. A resumed run keeps the due ones; a run
    // that turns out to be complete keeps all of them.
    int64_t metrics_bytes = 0;
    std::vector<MetricsLine> metrics_lines;
    std::optional<LossScaleState> loss_scale;  // with fp16
    std::vector<std::string> device;           // Backend::details of the first rank
    std::optional<HistoryState> history;       // where something goes by evaluations
    std::string weights;                       // fingerprint of the file of model.weights; empty without one
};

struct Checkpoint {
    CheckpointState state;
    std::vector<std::byte> model;      // safetensors
    std::vector<std::byte> optimizer;  // safetensors
    std::string path;
};

/// "step-00000469"
std::string checkpoint_name(int64_t step);

/// Writes `folder`/step-…: into a temporary folder, every file synced, then renamed; then `latest`, and `best` where
/// the history knows one; then all but that and the newest `keep` are removed. Returns the path. Throws kRuntime on a
/// failed write and leaves what was there as it was.
std::string write_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int64_t keep);

/// Has `folder`/best name the checkpoint of the best evaluation, if it is there.
void name_best(const std::string& folder, const std::optional<HistoryState>& history);

/// Reads and checks one: every file's length and sha256 stand in state.json. Throws kData naming the file for a damaged
/// one, kUsage for a path that is no checkpoint.
Checkpoint read_checkpoint(const std::string& path);

/// Steps of the complete checkpoints in `folder`, ascending.
std::vector<int64_t> checkpoint_steps(const std::string& folder);

/// The newest complete checkpoint in `folder`, or "".
std::string newest_checkpoint(const std::string& folder);

/// state.json alone, as it stands; for `inspect`.
std::string read_checkpoint_state_text(const std::string& path);

}  // namespace lockstep
