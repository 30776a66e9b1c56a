// One training run: the one place that strings the stages together. Every rank calls it with its own communicator; what
// it computes is a function of config and data, whatever the number of ranks is.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/reducer.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "optim/loss_scale.hpp"
#include "train/fault.hpp"
#include "train/metrics.hpp"
#include "train/progress.hpp"
#include "train/run_directory.hpp"

namespace lockstep {

class StepEngine;
struct DeviceChoice;

struct TrainOptions {
    std::string out;  // run directory; "" = everything stays in memory (tests, and worlds inside a process)
    ResumeMode resume = ResumeMode::kNever;
    std::string resume_path;  // of a checkpoint, for kPath
    std::string trace_file;   // a Chrome trace of all ranks; "" = none
    ProgressOptions progress;
    std::vector<std::string> argv;
    std::function<bool()> stop_requested;  // read between steps; empty = never
    /// Replaces the reducer (tests that break the promise on purpose).
    std::function<std::unique_ptr<Reducer>(Communicator&, int shards, ReduceLayout, Adder)> make_reducer;
    /// Replaces the choice of a device (tests of devices).
    std::function<DeviceChoice(Communicator&, const Config&)> make_device;
    /// Called once the weights are there: tests that watch steps, or change what lies in memory.
    std::function<void(StepEngine&)> on_engine;
    std::optional<LossScaleRules> loss_scale;  // in place of fp16's own (tests: any arithmetic can scale)
    std::optional<Fault> fault;                // planted on purpose, to see that a check finds it
    bool check_start = true;                   // tests that give ranks unequal configs on purpose switch it off
};

struct TrainResult {
    int64_t steps = 0;
    bool stopped = false;       // on request, checkpointed
    bool already_done = false;  // resume auto found a finished run
    std::string checkpoint;     // the last one written
    std::string sha256;         // of model.safetensors
    std::optional<EvalResult> evaluation;
    // In memory only (options.out empty), rank 0:
    std::string metrics;
    std::string trace;  // with check.trace
    std::vector<std::byte> model;
};

/// Throws SharedError for what stops all ranks alike (config, data, non-finite values …).
TrainResult train(Communicator& comm, LoadedConfig loaded, const TrainOptions& options);

/// The same on data that are open already; `data` of every rank must be equal.
TrainResult train_on(Communicator& comm, LoadedConfig loaded, const DataSplits& data, const TrainOptions& options);

}  // namespace lockstep
