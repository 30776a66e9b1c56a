#include "train/training_run.hpp"

#include <nlohmann/json.hpp>

#include "backend/out_of_memory.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"
#include "train/evaluator.hpp"

namespace lockstep {

TrainingRun::TrainingRun(Communicator& comm, const Config& config, const DataSplits& data, const TrainOptions& options,
                         const RunPlan& plan, const StartFacts& facts, DeviceChoice& device, RunDirectory* directory)
    : comm_(comm),
      config_(config),
      data_(data),
      options_(options),
      plan_(plan),
      facts_(facts),
      directory_(directory),
      engine_(comm, *device.backend, config, plan, *data.train, options, device.exchange.get(), device.graphs.get()),
      history_(config, data.validation || data.test, data.train->classes()),
      replicas_(comm, engine_.backend(), engine_.network().parameters(), engine_.weights(), engine_.update().slots()),
      progress_(options.progress),
      pace_(comm, plan.shards.shards()) {
    if (!options.fault) return;
    check_fault(*options.fault, comm.size(), plan.total_steps, "planted fault");
    fault_.emplace(*options.fault, comm.rank(), engine_.network().parameters(), engine_.backend());
    engine_.watch(*fault_);
}

TrainResult TrainingRun::execute(const StartingPoint& start, const LoadedConfig& loaded) {
    if (!options_.trace_file.empty()) {
        timeline_.emplace(comm_, options_.trace_file, &engine_.backend());
        engine_.watch(*timeline_);
    }
    try {
        train_from(start, loaded);
    } catch (const SharedError& e) {
        if (timeline_) timeline_->close_after(e.kind());
        throw;
    } catch (const PeerFailed&) {
        throw;
    } catch (const OutOfMemory& e) {
        comm_.announce_failure();
        throw OutOfMemory(fmt::format("{} (after step {})", e.what(), result_.steps), e.device_bytes());
    } catch (const Error& e) {
        comm_.announce_failure();  // while what messages under way point to still exists
        throw Error(e.kind(), fmt::format("{} (after step {})", e.what(), result_.steps));
    } catch (...) {
        comm_.announce_failure();
        throw;
    }
    if (timeline_) timeline_->close();
    return std::move(result_);
}

void TrainingRun::train_from(const StartingPoint& start, const LoadedConfig& loaded) {
    open(start, loaded);
    agree(comm_, [&] { engine_.restore(start); });
    restore_history(start);
    if (options_.on_engine) options_.on_engine(engine_);
    start_trace(start);
    // A run that starts from another's checkpoint holds it from then on: killed early, it goes on from there, too.
    if (on_disk() && options_.resume == ResumeMode::kPath) save(start.step);
    int64_t done = result_.steps = start.step;
    while (done < plan_.total_steps && !result_.stopped && !history_.state().stopped) {
        const Clock::time_point begin = Clock::now();
        const StepOutcome outcome = engine_.step();
        const double seconds = seconds_since(begin);
        training_s_ += seconds;
        window_s_ += seconds;
        done = result_.steps = outcome.at.update;
        watch_pace(seconds);
        after_step(outcome);
    }
    if (!result_.stopped) finish(done);
    close();
}

void TrainingRun::restore_history(const StartingPoint& start) {
    HistoryState state = start.history.value_or(HistoryState());
    // A new folder holds no checkpoint from before its start.
    if (options_.resume == ResumeMode::kPath && state.best.best_step != start.step) state.best = {};
    history_.restore(state);
    engine_.set_rate_drops(state.drops);
    if (first() && on_disk() && !start.path.empty()) {
        comm_.work_aside([&] { name_best(directory_->checkpoints(), state); });
    }
}

void TrainingRun::start_trace(const StartingPoint& start) {
    if (config_.check.trace != "hash") return;
    trace_.emplace(comm_, engine_.backend(), engine_.network().parameters(),
                   TraceFacts{plan_.shards.shards(), data_.train->shape().elements(), facts_.train_data});
    trace_->open(on_disk() ? directory_->file("trace.jsonl") : "", start.step,
                 options_.resume == ResumeMode::kAuto && !start.path.empty(), engine_.weights());
    engine_.watch(*trace_);
}

void TrainingRun::watch_pace(double seconds) {
    const double waited = engine_.seconds_waiting();
    const std::optional<Straggler> slow = pace_.after_step(seconds, waited - pace_waited_);
    pace_waited_ = waited;
    if (!slow) return;
    const std::string& host = run_.hosts[static_cast<std::size_t>(slow->rank)];
    warn_line(straggler_text(*slow, host));
    events_.append("warning", {{"kind", "straggler"},
                               {"step", result_.steps},
                               {"rank", slow->rank},
                               {"rank_host", host},
                               {"step_s", slow->step_s},
                               {"usual_s", slow->usual_s},
                               {"lost", slow->lost}});
}

void TrainingRun::after_step(const StepOutcome& outcome) {
    const int64_t u = outcome.at.update;
    const bool full = u == plan_.total_steps;
    const bool due = u % config_.log.every == 0;
    const StepRecord record = record_of(outcome);
    const bool shows = due || full || plan_.ends_epoch(u);
    if (first() && shows) show(outcome);
    if (replicas_due(u) && !(on_disk() && checkpoint_due(u))) check_replicas(u, false);  // save() does it, too

    std::vector<MetricsLine> lines;
    const bool best = watched() != nullptr && (eval_due(u) || full) && evaluate_watched(u, lines);
    const bool last = full || history_.state().stopped;
    if (last && data_.validation && data_.test) evaluate_split(u, "test", *data_.test, false, lines);
    if (first()) {
        metrics_.begin_step();
        if (due || last) metrics_.append({step_line(record), due});
        for (MetricsLine& line : lines) metrics_.append(std::move(line));
        if (last && !shows) show(outcome);
        if (last && !full) {
            inform("{} was no better in {} evaluations: the run ends with step {}", config_.train.stop_metric,
                   config_.train.stop_patience, u);
        }
    }
    const bool stop = outcome.stop_agreed && !last;
    if (on_disk() && (last || stop || best || checkpoint_due(u))) save(u);
    if (!stop) return;
    result_.stopped = true;
    if (first()) events_.append("stop", {{"step", u}, {"checkpoint", result_.checkpoint}});
}

bool TrainingRun::eval_due(int64_t u) const {
    const auto& e = config_.eval;
    return (e.every_epochs > 0 && plan_.ends_epoch(u) && (u / plan_.steps_per_epoch) % e.every_epochs == 0) ||
           (e.every_steps > 0 && u % e.every_steps == 0);
}

bool TrainingRun::checkpoint_due(int64_t u) const {
    const auto& c = config_.checkpoint;
    return (c.every_epochs > 0 && plan_.ends_epoch(u) && (u / plan_.steps_per_epoch) % c.every_epochs == 0) ||
           (c.every_steps > 0 && u % c.every_steps == 0);
}

bool TrainingRun::evaluate_watched(int64_t u, std::vector<MetricsLine>& lines) {
    const bool due = eval_due(u);
    const EvalResult result = evaluate_split(u, data_.validation ? "validation" : "test", *watched(), due, lines);
    warn_undefined(result);
    if (due) history_.observe_due(result);
    engine_.set_rate_drops(history_.state().drops);
    return history_.observe_best(result);
}

void TrainingRun::warn_undefined(const EvalResult& result) {
    if (!first() || told_undefined_) return;
    for (const std::string& metric : history_.undefined(result)) {
        warn_line(fmt::format("{} is undefined on the {} data after step {} and counts neither as better nor as worse",
                              metric, result.split, result.step));
        told_undefined_ = true;
    }
}

EvalResult TrainingRun::evaluate_split(int64_t u, const char* split, const Dataset& data, bool due,
                                       std::vector<MetricsLine>& lines) {
    const TimelineMark evaluation = mark(Stage::kEvaluate, u);
    EvalResult result = evaluate({comm_, engine_.backend(), engine_.network(), engine_.weights(), config_}, data);
    result.split = split;
    result.step = u;
    result.epoch = u / plan_.steps_per_epoch;
    result_.evaluation = result;
    lines.push_back({eval_line(result), due});
    if (first()) progress_.line(eval_text(result));
    return result;
}

void TrainingRun::check_replicas(int64_t u, bool state) {
    const TimelineMark comparison = mark(Stage::kReplicaCheck, u);
    replicas_.require_equal(u, state, events_, last_passed_);
    checked_step_ = u;
}

StepRecord TrainingRun::record_of(const StepOutcome& outcome) const {
    const int64_t u = outcome.at.update;
    const int64_t samples = plan_.samples_used(u);
    const double rate =
        static_cast<double>(samples - plan_.samples_used(window_step_or_start())) / std::max(window_s_, 1e-9);
    return {
        u,    outcome.at.epoch,   samples,        outcome.loss, outcome.lr, outcome.grad_norm, seconds_since(begin_),
        rate, outcome.loss_scale, outcome.skipped};
}

void TrainingRun::show(const StepOutcome& outcome) {
    const int64_t u = outcome.at.update;
    const double rate = static_cast<double>(plan_.samples_used(u) - plan_.samples_used(window_step_or_start())) /
                        std::max(window_s_, 1e-9);
    const double waited = engine_.seconds_waiting();
    const double per_step = training_s_ / static_cast<double>(u - first_step_);
    progress_.show({outcome.at.epoch + 1, plan_.epochs, u, plan_.total_steps, outcome.loss, outcome.lr, rate,
                    (waited - window_waited_) / std::max(window_s_, 1e-9),
                    per_step * static_cast<double>(plan_.total_steps - u)});
    window_step_ = u;
    window_s_ = 0;
    window_waited_ = waited;
}

}  // namespace lockstep
