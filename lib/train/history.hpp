// The history of evaluations and what a run decides by it: falls of the learning rate on a plateau, early stopping, the
// best checkpoint. Every rank keeps it alike, and checkpoints hold it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "optim/improvement.hpp"
#include "train/metrics.hpp"

namespace lockstep {

/// What a checkpoint keeps of it.
struct HistoryState {
    Improvement plateau, stop, best;
    int64_t drops = 0;     // of the learning rate
    bool stopped = false;  // early: the run is over
    bool operator==(const HistoryState&) const = default;
};

/// As it stands in state.json.
nlohmann::json history_json(const HistoryState& history);
HistoryState history_of(const nlohmann::json& from);

class History {
  public:
    /// Throws kUsage where a metric is asked for that evaluations of such a model do not have, or an evaluation that
    /// never is.
    History(const Config& config, bool evaluates, int classes);

    /// An evaluation that is due, not one that only follows the last step: a longer run would not have had that one.
    void observe_due(const EvalResult& result);
    /// Any evaluation: whether it is the best so far, and checkpoint.best asks for that.
    bool observe_best(const EvalResult& result);

    /// The metrics that it goes by and this evaluation does not define, such as the precision of no prediction. They
    /// say nothing of better or worse, and so are not counted.
    std::vector<std::string> undefined(const EvalResult& result) const;

    const HistoryState& state() const { return state_; }
    void restore(const HistoryState& state) { state_ = state; }
    /// Whether anything goes by it, so that checkpoints must hold it.
    bool decides() const {
        return config_.schedule.name == "plateau" || !config_.train.stop_metric.empty() ||
               !config_.checkpoint.best.empty();
    }

  private:
    const Config& config_;
    HistoryState state_;
};

}  // namespace lockstep
