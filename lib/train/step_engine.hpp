// One step of a run and the parts it needs, made once: loader, network, reducer, update. It knows nothing of files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "data/loader.hpp"
#include "nn/network.hpp"
#include "optim/loss_scale.hpp"
#include "optim/schedule.hpp"
#include "optim/update.hpp"
#include "train/device_input.hpp"
#include "train/resume.hpp"
#include "train/settings.hpp"
#include "train/step_watcher.hpp"
#include "train/trainer.hpp"

namespace lockstep {

/// What one update did.
struct StepOutcome {
    StepPosition at{};
    float loss = 0;  // mean over the global batch
    float lr = 0;
    std::optional<float> grad_norm;
    bool stop_agreed = false;         // a rank was asked to stop, and all know
    std::optional<float> loss_scale;  // that the gradients were multiplied by; none where they are not scaled
    bool skipped = false;             // scaled gradients overflowed: no weight was changed
};

/// Everything of a step: loader → network → reducer → update. The same on every rank.
class StepEngine {
  public:
    /// `exchange` carries the sums, where `comm` cannot since they lie on a device; null: `comm` does. `graphs`: those
    /// of the backend, or null.
    StepEngine(Communicator& comm, Backend& backend, const Config& config, const RunPlan& plan, const Dataset& data,
               const TrainOptions& options, Communicator* exchange = nullptr, StepGraphs* graphs = nullptr);

    /// Weights and state of a checkpoint, or the initial ones; then the loader begins after `start.step`.
    void restore(const StartingPoint& start);
    /// One update, or none where scaled gradients overflow. Throws SharedError(kNonFinite) on all ranks, with the
    /// weights as they were, naming the samples.
    StepOutcome step();
    /// From the next step on calls `watcher`, which must outlive the steps.
    void watch(StepWatcher& watcher) { watchers_.push_back(&watcher); }

    /// Where the schedule is plateau: how often the rate has fallen. From the next step on.
    void set_rate_drops(int64_t drops) { schedule_.set_drops(drops); }

    Network& network() { return network_; }
    Backend& backend() { return backend_; }
    float* weights() { return weights_->floats(); }
    Update& update() { return update_; }
    /// None where gradients are not scaled.
    std::optional<LossScaleState> loss_scale() const;
    const Reducer& reducer() const { return *reducer_; }
    /// Seconds that this rank has waited for others so far: for gradients, and for the moments of batch norm.
    double seconds_waiting() const { return reducer_->seconds_waiting() + network_.seconds_waiting(); }
    /// Copies on the host, for files.
    std::vector<float> host_weights();
    std::vector<std::vector<float>> host_slots();

  private:
    void check_passes() const;
    int partial_count(std::span<const int64_t> sizes);
    void write_leads();
    const float* read_lead();
    /// The lead of sum i where the host writes it: the lead itself, if it sees the device's memory.
    float* host_lead(std::size_t i) { return leads_ ? leads_->floats() + i * kLead : partials_[i]; }
    void copy_next_batch();
    [[noreturn]] void explain_failure(const Batch& batch, NetworkInput input);

    Communicator& comm_;
    Backend& backend_;
    const Config& config_;
    const RunPlan& plan_;
    const Dataset& data_;
    const TrainOptions& options_;
    ShardRange local_;
    Network network_;
    Schedule schedule_;
    Update update_;
    std::optional<LossScale> loss_scale_;  // with fp16
    std::unique_ptr<Buffer> weights_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::vector<float*> partials_;   // of buffers_, each [kLead | flat elements]
    std::unique_ptr<Buffer> leads_;  // of partials_ on the host; none where the host sees them
    DeviceInput input_;
    std::unique_ptr<Reducer> reducer_;
    std::unique_ptr<Loader> loader_;
    std::vector<StepWatcher*> watchers_;
    std::map<std::vector<int64_t>, int> counts_;  // non-empty maximal nodes of this rank, by shard sizes
    std::vector<int64_t> sizes_;                  // key of the look-up, kept so that a step allocates nothing
};

}  // namespace lockstep
