// lockstep env (doctor): what every rank of a job is, has and may do, and what to change before training.
#include <unistd.h>

#include <memory>

#include "commands.hpp"
#include "launch.hpp"
#include "train/doctor.hpp"
#include "train/doctor_print.hpp"

namespace lockstep {
namespace {

struct EnvCommand {
    DoctorOptions doctor;
    bool json = false;
};

/// Processes that a launcher without MPI started know nothing of each other: the first of them speaks.
bool speaks(const Communicator& comm) {
    return comm.rank() == 0 && (under_launcher() || environment_variable("SLURM_PROCID").value_or("0") == "0");
}

int env_here(Communicator& comm, const EnvCommand& options, const GlobalOptions& global) {
    const ClusterFacts facts = examine_job(comm, options.doctor);
    if (!speaks(comm)) return 0;
    const Findings findings = examine(facts);
    print_result(options.json ? report_json(facts, findings)
                              : report_text(facts, findings, global.use_color(STDOUT_FILENO)));
    return 0;
}

}  // namespace

void add_env(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("env", "What every rank of a job is and has, and what to change before training");
    command->alias("doctor");
    command->footer(
        "Alone, or under mpirun or srun as training would be started. Exit code 0 whenever it could report:\n"
        "the last line, and \"faults\" with --json, says how many findings would stop a training.");
    const auto options = std::make_shared<EnvCommand>();
    command
        ->add_option("-c,--config", options->doctor.sources.files,
                     "Config file (TOML): its device keys and data are looked at, too")
        ->type_name("FILE")
        ->allow_extra_args(false);
    command->add_option("--set", options->doctor.sources.sets, "Set one key, for example device.threads=2")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    command->add_option("--out", options->doctor.out, "Where a run would be written (default: here)")->type_name("DIR");
    command->add_flag("--json", options->json, "One JSON document");
    command->callback([options, &invocation] {
        invocation.action = [options, &invocation] {
            return run_as_rank(invocation, true,
                               [&](Communicator& comm) { return env_here(comm, *options, invocation.global); });
        };
    });
}

}  // namespace lockstep
