// What a run starts from: nothing, or a checkpoint that may have been written at any other number of ranks and threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "train/checkpoint.hpp"
#include "train/initial_weights.hpp"
#include "train/run_directory.hpp"
#include "train/settings.hpp"
#include "train/start_check.hpp"

namespace lockstep {

struct StartingPoint {
    int64_t step = 0;              // updates done
    bool already_done = false;     // a finished run: nothing to do
    std::vector<std::byte> model;  // safetensors; empty = from the initial weights
    std::vector<std::byte> optimizer;
    std::string path;  // of the checkpoint, "" for a fresh start
    std::optional<LossScaleState> loss_scale;
    std::optional<HistoryState> history;
    InitialWeights initial;  // of a fresh start with model.weights
    // Rank 0, and only where the run directory goes on:
    int64_t metrics_bytes = 0;
    std::vector<MetricsLine> metrics_lines;
};

/// Rank 0 prepares the run directory (null: in memory), reads the checkpoint that `mode` names and refuses what may not
/// differ: keys that can change a bit (each is listed), arithmetic, data; a smaller total; a larger one with a schedule
/// that knows its end. Everybody gets the result. Collective.
StartingPoint find_start(Communicator& comm, RunDirectory* directory, ResumeMode mode, const std::string& path,
                         const Config& config, const RunPlan& plan, const StartFacts& facts);

/// The refusals alone: throws kUsage with a line for each difference.
void check_resumable(const CheckpointState& from, const std::string& where, const Config& config, const RunPlan& plan,
                     const StartFacts& facts);

}  // namespace lockstep
