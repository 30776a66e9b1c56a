// A run between its first and its last step: what follows each update (metrics, evaluation, checkpoints, progress).
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/version.hpp"
#include "train/checkpoint.hpp"
#include "train/device.hpp"
#include "train/events.hpp"
#include "train/history.hpp"
#include "train/pace.hpp"
#include "train/replica_check.hpp"
#include "train/start_check.hpp"
#include "train/step_engine.hpp"
#include "train/timeline.hpp"
#include "train/trace.hpp"
#include "train/trainer.hpp"

namespace lockstep {

class TrainingRun {
  public:
    TrainingRun(Communicator& comm, const Config& config, const DataSplits& data, const TrainOptions& options,
                const RunPlan& plan, const StartFacts& facts, DeviceChoice& device, RunDirectory* directory);

    /// From a start to the last step, or to a stop that all ranks agreed on.
    TrainResult execute(const StartingPoint& start, const LoadedConfig& loaded);

  private:
    using Clock = std::chrono::steady_clock;
    static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    bool first() const { return comm_.rank() == 0; }
    bool on_disk() const { return directory_ != nullptr; }
    /// As the files say it; the whole fingerprint stands in state.json and run.json.
    std::string arithmetic() const { return config_.device.arithmetic == "vendor" ? "vendor" : kArithmetic; }
    /// Notes the time until the end of the scope, if there is a time line.
    TimelineMark mark(Stage stage, int64_t step) { return {timeline_ ? &*timeline_ : nullptr, stage, step}; }

    void train_from(const StartingPoint& start, const LoadedConfig& loaded);
    void restore_history(const StartingPoint& start);
    void open(const StartingPoint& start, const LoadedConfig& loaded);
    void start_trace(const StartingPoint& start);
    void open_files(const StartingPoint& start, const LoadedConfig& loaded);
    bool eval_due(int64_t u) const;
    bool checkpoint_due(int64_t u) const;

    bool replicas_due(int64_t u) const {
        return config_.check.replicas_every > 0 && u % config_.check.replicas_every == 0;
    }

    /// The split that is looked at while training; null where there is none.
    const Dataset* watched() const { return data_.validation ? data_.validation.get() : data_.test.get(); }

    /// The lines of a step are written once it is known whether it is the last one, which an evaluation may decide.
    void after_step(const StepOutcome& outcome);
    void watch_pace(double seconds);
    StepRecord record_of(const StepOutcome& outcome) const;
    int64_t window_step_or_start() const { return std::max(window_step_, first_step_); }
    void show(const StepOutcome& outcome);

    /// Of the split that is watched; learning rate, end and best checkpoint may follow from it. Whether it is the best.
    bool evaluate_watched(int64_t u, std::vector<MetricsLine>& lines);
    void warn_undefined(const EvalResult& result);
    EvalResult evaluate_split(int64_t u, const char* split, const Dataset& data, bool due,
                              std::vector<MetricsLine>& lines);

    /// Throws on all ranks where they differ. What is saved comes right after it.
    void check_replicas(int64_t u, bool state);
    void save(int64_t u);
    void finish(int64_t steps);
    void close();

    Communicator& comm_;
    const Config& config_;
    const DataSplits& data_;
    const TrainOptions& options_;
    const RunPlan& plan_;
    const StartFacts& facts_;
    RunDirectory* directory_;
    StepEngine engine_;
    History history_;
    ReplicaCheck replicas_;
    std::optional<FaultPlanter> fault_;
    std::optional<Timeline> timeline_;
    std::optional<Trace> trace_;  // last of the engine's watchers: it sees what the others did
    Progress progress_;
    MetricsLog metrics_;  // of rank 0
    EventsLog events_;    // of rank 0
    RunFacts run_;
    TrainResult result_;
    Clock::time_point begin_ = Clock::now();
    double training_s_ = 0;  // in steps, without evaluation and saving
    int64_t first_step_ = 0;
    int64_t checked_step_ = -1;    // after which the ranks were last found equal
    std::string last_passed_;      // of rank 0: the checkpoint to go on from, should they differ
    bool told_undefined_ = false;  // that a metric which decides something says nothing
    // Since the last line of progress:
    int64_t window_step_ = 0;
    double window_s_ = 0;
    double window_waited_ = 0;
    PaceWatch pace_;
    double pace_waited_ = 0;
};

}  // namespace lockstep
