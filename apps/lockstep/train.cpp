// lockstep train: one run, alone or as one of the ranks of a launcher.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "launch.hpp"
#include "train/agreement.hpp"
#include "train/stop_signal.hpp"
#include "train/trainer.hpp"

namespace lockstep {
namespace {

/// Of tests alone: a fault to plant, as verify's --fault has it.
constexpr const char* kFaultVariable = "LOCKSTEP_DEBUG_FAULT";

struct TrainCommand {
    ConfigOptions config;
    std::string out;
    std::string trace_file;
    std::string resume = "never";
    std::string log_dir;
    bool allow_singleton = false;
};

/// However training ends, nobody is to be told afterwards that a checkpoint follows.
struct StopHandlersEnd {
    ~StopHandlersEnd() { remove_stop_handlers(); }
};

int train_here(Communicator& comm, const TrainCommand& options, const Invocation& invocation) {
    const StopHandlersEnd end;
    let_stop_handlers_speak(comm.rank() == 0);
    LoadedConfig loaded;
    TrainOptions train_options;
    agree(comm, [&] {
        if (options.resume == "auto" && options.out.empty()) {
            fail(ErrorKind::kUsage, "--resume auto needs --out DIR: which run is to go on?");
        }
        loaded = options.config.load();
        if (!options.log_dir.empty()) {
            loaded.config.log.dir = std::filesystem::absolute(options.log_dir).string();
            loaded.origins["log.dir"] = "--log-dir";
        }
        if (!loaded.config.log.dir.empty()) open_rank_log(loaded.config.log.dir, comm.rank());
        const std::optional<std::string> fault = environment_variable(kFaultVariable);
        if (fault && !fault->empty()) train_options.fault = parse_fault(*fault, kFaultVariable);
    });
    if (train_options.fault) {
        warn("{}: bit {} of rank {}'s first weight flips after step {}", kFaultVariable, train_options.fault->bit,
             train_options.fault->rank, train_options.fault->step);
    }
    train_options.resume = options.resume == "never"  ? ResumeMode::kNever
                           : options.resume == "auto" ? ResumeMode::kAuto
                                                      : ResumeMode::kPath;
    if (train_options.resume == ResumeMode::kPath) train_options.resume_path = options.resume;
    // Rank 0's clock names the folder.
    train_options.out =
        comm.broadcast(0, options.out.empty() ? "runs/" + loaded.name + "-" + compact_now() : options.out);
    train_options.trace_file = comm.broadcast(0, options.trace_file);
    train_options.progress =
        choose_progress(invocation.global.progress, under_launcher(),
                        invocation.global.use_color(under_launcher() ? STDOUT_FILENO : STDERR_FILENO));
    if (comm.rank() != 0) train_options.progress.style = ProgressStyle::kNone;
    train_options.argv = invocation.arguments;
    train_options.stop_requested = [] { return stop_signal() != 0; };
    const TrainResult result = train(comm, std::move(loaded), train_options);
    if (comm.rank() == 0) {
        if (result.stopped) {
            inform("stopped on request at step {}; go on with --resume auto --out {}", result.steps, train_options.out);
        } else if (!result.already_done) {
            inform("done: {} steps, {}/model.safetensors  sha256 {}", result.steps, train_options.out, result.sha256);
        }
    }
    return result.stopped ? exit_code(ErrorKind::kStopped) : 0;
}

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("train", "Train; alone, or under mpirun or srun with any number of ranks");
    const auto options = std::make_shared<TrainCommand>();
    options->config.add_to(*command, true);
    command->add_option("--out", options->out, "Run directory (default runs/<config>-<time>)")->type_name("DIR");
    command
        ->add_option("--resume", options->resume,
                     "auto: go on in --out; never: refuse an existing run; a checkpoint: start from it")
        ->capture_default_str()
        ->type_name("auto|never|PATH");
    command
        ->add_option("--trace-file", options->trace_file,
                     "Write a time line of all ranks, as a Chrome trace that Perfetto opens")
        ->type_name("FILE.json");
    command
        ->add_option("--log-dir", options->log_dir,
                     "All lines of each rank, with times, in DIR/rank-00000.log … (log.dir)")
        ->type_name("DIR");
    command->add_flag("--allow-singleton", options->allow_singleton,
                      "Train alone though a launcher without MPI started several");
    command->callback([options, &invocation] {
        invocation.action = [options, &invocation] {
            install_stop_handlers();
            std::signal(SIGPIPE, SIG_IGN);  // whoever read the progress has left: no reason to stop
            return run_as_rank(invocation, options->allow_singleton,
                               [&](Communicator& comm) { return train_here(comm, *options, invocation); });
        };
    });
}

}  // namespace lockstep
