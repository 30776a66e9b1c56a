// What a run leaves in its folder: the files it opens, checkpoints, and the end.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"
#include "train/model_file.hpp"
#include "train/training_run.hpp"

namespace lockstep {

void TrainingRun::open(const StartingPoint& start, const LoadedConfig& loaded) {
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

void TrainingRun::open_files(const StartingPoint& start, const LoadedConfig& loaded) {
    write_file_atomic(directory_->file("config.resolved.toml"), config_to_toml(loaded.config));
    write_file_atomic(directory_->file("run.json"), run_json(run_));
    if (options_.resume == ResumeMode::kAuto && !start.path.empty()) {  // killed before it named the newest?
        write_file_atomic(directory_->checkpoints() + "/latest", checkpoint_name(start.step) + "\n");
    }
    metrics_ = MetricsLog(directory_->file("metrics.jsonl"), start.metrics_bytes);
    events_ = EventsLog(directory_->file("events.jsonl"));
}

void TrainingRun::save(int64_t u) {
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

void TrainingRun::finish(int64_t steps) {
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

void TrainingRun::close() {
    progress_.close();
    if (!first()) return;
    result_.metrics = metrics_.text();
    if (trace_) result_.trace = trace_->text();
    if (!on_disk()) return;
    run_.end = utc_now();
    run_.device = engine_.backend().details();
    comm_.work_aside([&] { write_file_atomic(directory_->file("run.json"), run_json(run_)); });
}

}  // namespace lockstep
