#include "train/resume.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <type_traits>

#include "config/key_table.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

bool holds_model(const RunDirectory& directory) {
    std::error_code ignored;
    return std::filesystem::exists(directory.file("model.safetensors"), ignored);
}

/// A run that is done is left as it is, but for a model that somebody removed: its last checkpoint holds the same
/// bytes.
void restore_model(const RunDirectory& directory, std::span<const std::byte> model) {
    if (holds_model(directory)) return;
    write_file_atomic(directory.file("model.safetensors"), model);
    inform("{} was missing: written again from the last checkpoint", directory.file("model.safetensors"));
}

void check_model_is_there(const RunDirectory& directory) {
    if (holds_model(directory)) return;
    fail(ErrorKind::kData,
         "{}: the run is done, but its model.safetensors is missing and no checkpoint is left to write it from; train "
         "again into another --out",
         directory.path());
}

/// Where rank 0 starts from; what the others need of it is broadcast.
StartingPoint find_on_first(RunDirectory* directory, ResumeMode mode, const std::string& path, const Config& config,
                            const RunPlan& plan, const StartFacts& facts) {
    StartingPoint start;
    std::string from = mode == ResumeMode::kPath ? path : "";
    int64_t finished = -1;
    if (directory != nullptr) {
        if (mode == ResumeMode::kAuto) {
            directory->claim();  // before what it holds is read
            from = newest_checkpoint(directory->checkpoints());
            finished = directory->finished_steps();
        }
    }
    if (from.empty()) {
        start.already_done = finished >= plan.total_steps || (finished >= 0 && directory->finished_early());
        if (start.already_done) check_model_is_there(*directory);
        start.step = start.already_done ? finished : 0;
        if (directory != nullptr && !start.already_done) directory->prepare(mode);
        return start;
    }
    Checkpoint checkpoint = read_checkpoint(from);
    const bool early = checkpoint.state.history && checkpoint.state.history->stopped;
    const bool done = (early || finished >= plan.total_steps) && finished == checkpoint.state.step;
    RunPlan compared = plan;
    if (done) compared.total_steps = checkpoint.state.total_steps;  // nothing is asked of it that it has not done
    check_resumable(checkpoint.state, from, config, compared, facts);
    start.step = checkpoint.state.step;
    start.loss_scale = checkpoint.state.loss_scale;
    start.history = checkpoint.state.history;
    // The best by another metric is none by this one.
    if (start.history && checkpoint.state.config.checkpoint.best != config.checkpoint.best) start.history->best = {};
    start.path = from;
    start.already_done = done;
    if (done) {
        directory->clear_leftovers();
        restore_model(*directory, checkpoint.model);
    }
    start.model = std::move(checkpoint.model);
    start.optimizer = std::move(checkpoint.optimizer);
    if (mode == ResumeMode::kAuto && directory != nullptr) {
        start.metrics_bytes = checkpoint.state.metrics_bytes;
        start.metrics_lines = std::move(checkpoint.state.metrics_lines);
        std::error_code error;
        const auto size = std::filesystem::file_size(directory->file("metrics.jsonl"), error);
        if (error || static_cast<int64_t>(size) < start.metrics_bytes) {
            fail(ErrorKind::kData,
                 "{}: holds {} bytes, the checkpoint {} was written after {}; start a new run from it with --resume {}",
                 directory->file("metrics.jsonl"), error ? 0 : size, from, start.metrics_bytes, from);
        }
    }
    if (directory != nullptr && !done) directory->prepare(mode);  // last: what is refused leaves no folder behind
    return start;
}

/// Rank 0's value to all: numbers, as they lie in memory.
template <class State>
void broadcast(Communicator& comm, std::optional<State>& state) {
    static_assert(std::is_trivially_copyable_v<State>);
    std::vector<std::byte> bytes;
    if (state) {
        const auto own = std::as_bytes(std::span(&*state, 1));
        bytes.assign(own.begin(), own.end());
    }
    comm.broadcast(0, bytes);
    if (!bytes.empty()) std::memcpy(&state.emplace(), bytes.data(), sizeof(State));
}

}  // namespace

void check_resumable(const CheckpointState& from, const std::string& where, const Config& config, const RunPlan& plan,
                     const StartFacts& facts) {
    std::string faults;
    const auto fault = [&](const std::string& line) {
        faults += (faults.empty() ? "" : "\n") + where + ": cannot resume: " + line;
    };
    if (from.arithmetic != facts.arithmetic) {
        fault(fmt::format("it was written with {}, this program computes {}", from.arithmetic, facts.arithmetic));
    }
    for (const KeyDifference& d : config_differences(from.config, config)) {
        if (d.effect != KeyEffect::kBits || d.key == "train.epochs" || d.key == "train.steps") continue;
        fault(fmt::format("{} was {}, now it is {}; set it back, or start a new run", d.key, d.left, d.right));
    }
    if (from.train_data != facts.train_data) {
        fault(fmt::format("the training data differ: {} then, {} now", from.train_data, facts.train_data));
    }
    if (from.test_data != facts.test_data) {
        fault(fmt::format("the test data differ: {} then, {} now", from.test_data.empty() ? "none" : from.test_data,
                          facts.test_data.empty() ? "none" : facts.test_data));
    }
    if (from.weights != facts.weights) {
        fault(fmt::format("the tensors of model.weights differ: {} then, {} now",
                          from.weights.empty() ? "none" : from.weights,
                          facts.weights.empty() ? "none" : facts.weights));
    }
    if (plan.total_steps < from.total_steps) {
        fault(fmt::format("{} steps in all were asked of it, now {}; a resumed run may only be longer",
                          from.total_steps, plan.total_steps));
    } else if (plan.total_steps > from.total_steps && Schedule(schedule_spec(config, plan)).knows_its_end()) {
        fault(
            fmt::format("{} steps in all were asked of it, now {}; schedule.name = \"{}\" ends with the run and would "
                        "have given other "
                        "learning rates from the start",
                        from.total_steps, plan.total_steps, config.schedule.name));
    }
    if (!faults.empty()) throw Error(ErrorKind::kUsage, faults);
}

StartingPoint find_start(Communicator& comm, RunDirectory* directory, ResumeMode mode, const std::string& path,
                         const Config& config, const RunPlan& plan, const StartFacts& facts) {
    StartingPoint start;
    agree_on_first(
        comm, [&] { comm.work_aside([&] { start = find_on_first(directory, mode, path, config, plan, facts); }); });
    const std::string numbers =
        comm.broadcast(0, fmt::format("{} {} {}", start.step, start.already_done ? 1 : 0, start.path));
    if (comm.rank() != 0) {
        std::size_t used = 0;
        start.step = std::stoll(numbers, &used);
        start.already_done = numbers.at(used + 1) == '1';
        start.path = numbers.substr(used + 3);
    }
    broadcast(comm, start.loss_scale);
    broadcast(comm, start.history);
    comm.broadcast(0, start.model);
    comm.broadcast(0, start.optimizer);
    return start;
}

}  // namespace lockstep
