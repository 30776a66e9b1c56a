// What eval, predict and export share: which trained model is meant, and the parts that run it on a split.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "commands.hpp"
#include "train/device.hpp"
#include "train/evaluator.hpp"
#include "train/stored_model.hpp"

namespace lockstep {

/// --run DIR, or --checkpoint PATH with -c FILE; --split; --allow-singleton.
struct StoredOptions {
    std::string run;
    std::string checkpoint;
    std::string split = "test";
    std::vector<std::string> files;
    std::vector<std::string> sets;
    std::vector<std::string> input;  // pictures without labels, in place of the split
    bool allow_singleton = false;

    void add_to(CLI::App& command, bool with_checkpoint);
    /// kUsage unless exactly one of --run and --checkpoint is given.
    void check() const;
    /// On this rank: reads the files.
    StoredModel read() const;
};

/// A stored model with its weights on the device and a split open. Made by all ranks together.
class StoredSession {
  public:
    StoredSession(Communicator& comm, const StoredOptions& options);
    EvaluationContext context();
    const Dataset& data() const { return *split_; }
    const StoredModel& stored() const { return stored_; }
    int64_t steps_per_epoch() const;

  private:
    Communicator& comm_;
    StoredModel stored_;
    DataSplits splits_;
    std::unique_ptr<Dataset> unlabelled_;
    const Dataset* split_ = nullptr;
    DeviceChoice device_;
    std::unique_ptr<Network> network_;
    std::unique_ptr<Buffer> weights_;
};

}  // namespace lockstep
