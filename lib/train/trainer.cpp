#include "train/trainer.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "backend/out_of_memory.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "train/agreement.hpp"
#include "train/checkpoint.hpp"
#include "train/device.hpp"
#include "train/evaluator.hpp"
#include "train/events.hpp"
#include "train/history.hpp"
#include "train/memory_advice.hpp"
#include "train/model_file.hpp"
#include "train/pace.hpp"
#include "train/replica_check.hpp"
#include "train/start_check.hpp"
#include "train/step_engine.hpp"
#include "train/timeline.hpp"
#include "train/trace.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A run between its first and its last step: what follows each update (metrics, evaluation, checkpoints, progress).
class Run {
  public:
    Run(Communicator& comm, const Config& config, const DataSplits& data, const TrainOptions& options,
        const RunPlan& plan, const StartFacts& facts, DeviceChoice& device, RunDirectory* directory)
        : comm_(comm),
          config_(config),
          data_(data),
          options_(options),
          plan_(plan),
          facts_(facts),
          directory_(directory),
          engine_(comm, *device.backend, config, plan, *data.train, options, device.exchange.get(),
                  device.graphs.get()),
          history_(config, data.validation || data.test, data.train->classes()),
          replicas_(comm, engine_.backend(), engine_.network().parameters(), engine_.weights(),
                    engine_.update().slots()),
          progress_(options.progress),
          pace_(comm, plan.shards.shards()) {
        if (!options.fault) return;
        check_fault(*options.fault, comm.size(), plan.total_steps, "planted fault");
        fault_.emplace(*options.fault, comm.rank(), engine_.network().parameters(), engine_.backend());
        engine_.watch(*fault_);
    }

    /// From a start to the last step, or to a stop that all ranks agreed on.
    TrainResult execute(const StartingPoint& start, const LoadedConfig& loaded) {
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

  private:
    bool first() const { return comm_.rank() == 0; }
    bool on_disk() const { return directory_ != nullptr; }
    /// As the files say it; the whole fingerprint stands in state.json and run.json.
    std::string arithmetic() const { return config_.device.arithmetic == "vendor" ? "vendor" : kArithmetic; }
    /// Notes the time until the end of the scope, if there is a time line.
    TimelineMark mark(Stage stage, int64_t step) { return {timeline_ ? &*timeline_ : nullptr, stage, step}; }

    void train_from(const StartingPoint& start, const LoadedConfig& loaded) {
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

    void restore_history(const StartingPoint& start) {
        HistoryState state = start.history.value_or(HistoryState());
        // A new folder holds no checkpoint from before its start.
        if (options_.resume == ResumeMode::kPath && state.best.best_step != start.step) state.best = {};
        history_.restore(state);
        engine_.set_rate_drops(state.drops);
        if (first() && on_disk() && !start.path.empty()) {
            comm_.work_aside([&] { name_best(directory_->checkpoints(), state); });
        }
    }

    void open(const StartingPoint& start, const LoadedConfig& loaded) {
        first_step_ = start.step;
        last_passed_ = start.path;
        const std::vector<std::string> hosts = comm_.all_gather(host_name());
        const std::vector<std::string> devices = comm_.all_gather(engine_.backend().name());
        log_verbose(
            fmt::format("rank {} of {} on {}: {}", comm_.rank(), comm_.size(), host_name(), engine_.backend().name()));
        if (!first()) return;
        run_ = {options_.argv, facts_.version, comm_.size(), hosts, devices, facts_.arithmetic, utc_now(), "", {}};
        if (on_disk()) comm_.work_aside([&] { open_files(start, loaded); });
        metrics_.begin_step();
        const bool complete = start.step == plan_.total_steps || (start.history && start.history->stopped);
        for (const MetricsLine& line : start.metrics_lines) {
            if (line.due || complete) metrics_.append(line);
        }
        events_.append(start.path.empty() ? "start" : "resume", {{"step", start.step},
                                                                 {"from", start.path},
                                                                 {"world", comm_.size()},
                                                                 {"steps", plan_.total_steps},
                                                                 {"arithmetic", facts_.arithmetic}});
        inform("{} parameters, {} samples, {} steps of {} ({} an epoch), {} shards on {} rank{}, {}{}",
               engine_.network().parameters().trainable(), data_.train->size(), plan_.total_steps, plan_.shards.batch(),
               plan_.steps_per_epoch, plan_.shards.shards(), comm_.size(), comm_.size() == 1 ? "" : "s",
               engine_.backend().name(), start.path.empty() ? "" : fmt::format(", from {}", start.path));
        if (comm_.size() > plan_.shards.shards()) {
            const int64_t idle = comm_.size() - plan_.shards.shards();
            warn("{} ranks but batch.shards = {}: {}", comm_.size(), plan_.shards.shards(),
                 idle == 1 ? "1 rank has nothing to do" : fmt::format("{} ranks have nothing to do", idle));
        }
    }

    void start_trace(const StartingPoint& start) {
        if (config_.check.trace != "hash") return;
        trace_.emplace(comm_, engine_.backend(), engine_.network().parameters(),
                       TraceFacts{plan_.shards.shards(), data_.train->shape().elements(), facts_.train_data});
        trace_->open(on_disk() ? directory_->file("trace.jsonl") : "", start.step,
                     options_.resume == ResumeMode::kAuto && !start.path.empty(), engine_.weights());
        engine_.watch(*trace_);
    }

    void open_files(const StartingPoint& start, const LoadedConfig& loaded) {
        write_file_atomic(directory_->file("config.resolved.toml"), config_to_toml(loaded.config));
        write_file_atomic(directory_->file("run.json"), run_json(run_));
        if (options_.resume == ResumeMode::kAuto && !start.path.empty()) {  // killed before it named the newest?
            write_file_atomic(directory_->checkpoints() + "/latest", checkpoint_name(start.step) + "\n");
        }
        metrics_ = MetricsLog(directory_->file("metrics.jsonl"), start.metrics_bytes);
        events_ = EventsLog(directory_->file("events.jsonl"));
    }

    bool eval_due(int64_t u) const {
        const auto& e = config_.eval;
        return (e.every_epochs > 0 && plan_.ends_epoch(u) && (u / plan_.steps_per_epoch) % e.every_epochs == 0) ||
               (e.every_steps > 0 && u % e.every_steps == 0);
    }
    bool checkpoint_due(int64_t u) const {
        const auto& c = config_.checkpoint;
        return (c.every_epochs > 0 && plan_.ends_epoch(u) && (u / plan_.steps_per_epoch) % c.every_epochs == 0) ||
               (c.every_steps > 0 && u % c.every_steps == 0);
    }

    bool replicas_due(int64_t u) const {
        return config_.check.replicas_every > 0 && u % config_.check.replicas_every == 0;
    }

    /// The split that is looked at while training; null where there is none.
    const Dataset* watched() const { return data_.validation ? data_.validation.get() : data_.test.get(); }

    /// The lines of a step are written once it is known whether it is the last one, which an evaluation may decide.
    void after_step(const StepOutcome& outcome) {
        const int64_t u = outcome.at.update;
        const bool full = u == plan_.total_steps;
        const bool due = u % config_.log.every == 0;
        const StepRecord record = record_of(outcome);
        const bool shows = due || full || plan_.ends_epoch(u);
        if (first() && shows) show(outcome);
        if (!checkpoint_due(u) && replicas_due(u)) check_replicas(u, false);

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

    void watch_pace(double seconds) {
        const double waited = engine_.reducer().seconds_waiting();
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

    StepRecord record_of(const StepOutcome& outcome) const {
        const int64_t u = outcome.at.update;
        const int64_t samples = plan_.samples_used(u);
        const double rate =
            static_cast<double>(samples - plan_.samples_used(window_step_or_start())) / std::max(window_s_, 1e-9);
        return {u,
                outcome.at.epoch,
                samples,
                outcome.loss,
                outcome.lr,
                outcome.grad_norm,
                seconds_since(begin_),
                rate,
                outcome.loss_scale,
                outcome.skipped};
    }

    int64_t window_step_or_start() const { return std::max(window_step_, first_step_); }

    void show(const StepOutcome& outcome) {
        const int64_t u = outcome.at.update;
        const double rate = static_cast<double>(plan_.samples_used(u) - plan_.samples_used(window_step_or_start())) /
                            std::max(window_s_, 1e-9);
        const double waited = engine_.reducer().seconds_waiting();
        const double per_step = training_s_ / static_cast<double>(u - first_step_);
        progress_.show({outcome.at.epoch + 1, plan_.epochs, u, plan_.total_steps, outcome.loss, outcome.lr, rate,
                        (waited - window_waited_) / std::max(window_s_, 1e-9),
                        per_step * static_cast<double>(plan_.total_steps - u)});
        window_step_ = u;
        window_s_ = 0;
        window_waited_ = waited;
    }

    /// Of the split that is watched; learning rate, end and best checkpoint may follow from it. Whether it is the best.
    bool evaluate_watched(int64_t u, std::vector<MetricsLine>& lines) {
        const bool due = eval_due(u);
        const EvalResult result = evaluate_split(u, data_.validation ? "validation" : "test", *watched(), due, lines);
        if (due) history_.observe_due(result);
        engine_.set_rate_drops(history_.state().drops);
        return history_.observe_best(result);
    }

    EvalResult evaluate_split(int64_t u, const char* split, const Dataset& data, bool due,
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

    /// Throws on all ranks where they differ. What is saved comes right after it.
    void check_replicas(int64_t u, bool state) {
        const TimelineMark comparison = mark(Stage::kReplicaCheck, u);
        replicas_.require_equal(u, state, events_, last_passed_);
        checked_step_ = u;
    }

    void save(int64_t u) {
        check_replicas(u, true);
        const TimelineMark saving = mark(Stage::kCheckpoint, u);
        agree_on_first(comm_, [&] {
            const ParameterTable& parameters = engine_.network().parameters();
            std::vector<std::vector<float>> host = engine_.host_slots();
            std::vector<Update::Slot> slots = engine_.update().slots();
            for (std::size_t i = 0; i < slots.size(); ++i) slots[i].values = host[i].data();
            Checkpoint checkpoint;
            checkpoint.state = {facts_.version,
                                facts_.arithmetic,
                                facts_.train_data,
                                facts_.test_data,
                                u,
                                plan_.total_steps,
                                config_,
                                metrics_.bytes_before_step(),
                                metrics_.step_lines(),
                                engine_.loss_scale(),
                                engine_.backend().details(),
                                history_.decides() ? std::optional(history_.state()) : std::nullopt,
                                facts_.weights};
            const std::vector<float> weights = engine_.host_weights();
            comm_.work_aside([&] {
                checkpoint.model = model_file(parameters, weights.data(), config_.model.name, arithmetic());
                checkpoint.optimizer = optimizer_file(parameters, slots, arithmetic());
                result_.checkpoint = write_checkpoint(directory_->checkpoints(), checkpoint, config_.checkpoint.keep);
            });
            last_passed_ = result_.checkpoint;
            events_.append("checkpoint", {{"step", u}, {"path", result_.checkpoint}});
        });
    }

    void finish(int64_t steps) {
        if (checked_step_ != steps) check_replicas(steps, false);
        agree_on_first(comm_, [&] {
            const ParameterTable& parameters = engine_.network().parameters();
            const std::vector<float> weights = engine_.host_weights();
            comm_.work_aside([&] {
                result_.model = model_file(parameters, weights.data(), config_.model.name, arithmetic());
                Sha256 hash;
                hash.update(result_.model);
                result_.sha256 = hash.hex();
                if (on_disk()) write_file_atomic(directory_->file("model.safetensors"), result_.model);
            });
            const auto samples = static_cast<double>(plan_.samples_used(steps) - plan_.samples_used(first_step_));
            metrics_.append({end_line({steps, steps / plan_.steps_per_epoch, history_.state().stopped,
                                       weights_hash(parameters, weights.data()), result_.sha256, seconds_since(begin_),
                                       training_s_ > 0 ? samples / training_s_ : 0.0})});
        });
    }

    void close() {
        progress_.close();
        if (!first()) return;
        result_.metrics = metrics_.text();
        if (trace_) result_.trace = trace_->text();
        if (!on_disk()) return;
        run_.end = utc_now();
        run_.device = engine_.backend().details();
        comm_.work_aside([&] { write_file_atomic(directory_->file("run.json"), run_json(run_)); });
    }

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
    int64_t checked_step_ = -1;  // after which the ranks were last found equal
    std::string last_passed_;    // of rank 0: the checkpoint to go on from, should they differ
    // Since the last line of progress:
    int64_t window_step_ = 0;
    double window_s_ = 0;
    double window_waited_ = 0;
    PaceWatch pace_;
    double pace_waited_ = 0;
};

}  // namespace

TrainResult train_on(Communicator& comm, LoadedConfig loaded, const DataSplits& data, const TrainOptions& options) {
    comm.set_timeout(loaded.config.device.timeout_s);
    StartFacts facts{version(), "", data.train->fingerprint(), data.test ? data.test->fingerprint() : "", ""};
    if (options.check_start) check_equal_start(comm, loaded, facts);
    const Config& config = loaded.config;
    std::optional<RunPlan> plan;
    agree(comm, [&] { plan = make_run_plan(config, data.train->size()); });
    DeviceChoice device = options.make_device ? options.make_device(comm, config) : choose_device(comm, config);
    facts.arithmetic = device.backend->fingerprint();
    if (options.check_start) check_equal_arithmetic(comm, facts.arithmetic);
    std::optional<RunDirectory> directory;
    if (!options.out.empty()) directory.emplace(options.out);
    RunDirectory* const folder = directory ? &*directory : nullptr;
    InitialWeights initial = read_initial_weights(comm, config);
    agree(comm, [&] { facts.weights = fingerprint_of(initial); });
    StartingPoint start = find_start(comm, folder, options.resume, options.resume_path, config, *plan, facts);
    if (start.path.empty()) start.initial = std::move(initial);
    if (start.already_done) {
        inform("{}: the run is done: {} steps", options.out, start.step);
        TrainResult result;
        result.steps = start.step;
        result.already_done = true;
        return result;
    }
    std::optional<Run> run;
    const ExchangeEndsFirst ends_first(device);
    agree(comm, [&] {
        with_memory_advice(config, comm.size(),
                           [&] { run.emplace(comm, config, data, options, *plan, facts, device, folder); });
    });
    TrainResult result;
    with_memory_advice(config, comm.size(), [&] { result = run->execute(start, loaded); });
    return result;
}

TrainResult train(Communicator& comm, LoadedConfig loaded, const TrainOptions& options) {
    comm.set_timeout(loaded.config.device.timeout_s);
    DataSplits data;
    agree(comm, [&] { comm.work_aside([&] { data = open_data(loaded.config); }); });
    return train_on(comm, std::move(loaded), data, options);
}

}  // namespace lockstep
