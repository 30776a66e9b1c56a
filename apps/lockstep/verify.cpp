// lockstep verify: one config trained for some steps in worlds of several sizes, compared bit by bit after each.
#include <memory>

#include "commands.hpp"
#include "launch.hpp"
#include "train/agreement.hpp"
#include "train/verification.hpp"
#include "train/verification_report.hpp"

namespace lockstep {
namespace {

struct VerifyCommand {
    ConfigOptions config;
    int64_t steps = 20;
    std::string worlds;
    std::string fault;
    bool json = false;
    bool allow_singleton = false;
};

int verify_here(Communicator& comm, const VerifyCommand& options, bool worlds_given, bool fault_given) {
    LoadedConfig loaded;
    VerifyOptions verify_options;
    verify_options.steps = options.steps;
    agree(comm, [&] {
        if (worlds_given) verify_options.worlds = parse_worlds(options.worlds, "--worlds");
        if (fault_given) verify_options.fault = parse_fault(options.fault, "--fault");
        loaded = options.config.load();
    });
    const Verification found = verify(comm, std::move(loaded), verify_options);
    agree_on_first(
        comm, [&] { options.json ? print_result(verification_json(found)) : print_text(verification_text(found)); });
    if (found.difference) throw SharedError(ErrorKind::kMismatch, departure_line(found));
    return 0;
}

}  // namespace

void add_verify(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand(
        "verify", "Train the first steps in worlds of several sizes and compare every bit; alone or under mpirun");
    const auto options = std::make_shared<VerifyCommand>();
    options->config.add_to(*command, true);
    command->add_option("--steps", options->steps, "Steps to train and compare (default 20)")->type_name("STEPS");
    const CLI::Option* worlds =
        command
            ->add_option(
                "--worlds", options->worlds,
                "Ranks of each world, the first is what the others are compared with (default 1 … N; alone: 1, "
                "twice); one larger than the job runs as threads")
            ->type_name("1,2,…");
    const CLI::Option* fault =
        command
            ->add_option("--fault", options->fault,
                         "Flip bit B (0-31) of the first weight of rank R after step S, in the last world")
            ->type_name("rank:R,step:S,bit:B");
    command->add_flag("--json", options->json, "Print one JSON document");
    command->add_flag("--allow-singleton", options->allow_singleton,
                      "Work alone though a launcher without MPI started several");
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation, worlds_given = worlds->count() > 0, fault_given = fault->count() > 0] {
            return run_as_rank(invocation, options->allow_singleton, [&](Communicator& comm) {
                return verify_here(comm, *options, worlds_given, fault_given);
            });
        };
    });
}

}  // namespace lockstep
