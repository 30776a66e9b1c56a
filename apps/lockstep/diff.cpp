// lockstep diff: where two runs part, and what differs between them.
#include <memory>
#include <string>

#include "commands.hpp"
#include "core/error.hpp"
#include "launch.hpp"
#include "train/run_diff.hpp"

namespace lockstep {

void add_diff(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand(
        "diff", "Where two runs part: the first step, stage and tensor, by how much, and what differs between them");
    command->footer(
        "Trained with check.trace = \"hash\", both runs leave what tells the very step, its stage and the tensor. "
        "Without\n"
        "it diff has log lines, checkpoints and final weights, which tell a later step and no stage.");
    const auto left = std::make_shared<std::string>();
    const auto right = std::make_shared<std::string>();
    const auto json = std::make_shared<bool>(false);
    command->add_option("run_a", *left, "Run directory")->type_name("RUN_A")->required();
    command->add_option("run_b", *right, "Run directory")->type_name("RUN_B")->required();
    command->add_flag("--json", *json, "One JSON document");
    command->callback([=, &invocation] {
        invocation.action = on_first_rank(invocation, [=] {
            const RunDiff diff = diff_runs(*left, *right);
            *json ? print_result(diff_json(diff)) : print_text(diff_text(diff));
            return diff.first ? exit_code(ErrorKind::kMismatch) : 0;
        });
    });
}

}  // namespace lockstep
