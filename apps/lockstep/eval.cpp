// lockstep eval: loss and accuracy of a trained model on a split, every sample counted once at any number of ranks.
#include <memory>

#include "commands.hpp"
#include "launch.hpp"
#include "stored.hpp"
#include "train/confusion.hpp"
#include "train/evaluator.hpp"
#include "train/progress.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

int eval_here(Communicator& comm, const StoredOptions& options, bool json) {
    StoredSession session(comm, options);
    EvalResult result = evaluate(session.context(), session.data(), true);
    result.split = options.split;
    result.step = session.stored().step;
    result.epoch = result.step / session.steps_per_epoch();
    if (comm.rank() != 0) return 0;
    print_result((json ? eval_line(result) : eval_text(result)) + "\n");
    if (!json && !result.confusion.empty()) print_result(confusion_text(result.confusion));
    return 0;
}

}  // namespace

void add_eval(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand(
        "eval", "Loss, accuracy, top-5 or AUC, and the confusion matrix of a trained model on a split");
    const auto options = std::make_shared<StoredOptions>();
    const auto json = std::make_shared<bool>(false);
    options->add_to(*command, true);
    command->add_flag("--json", *json, "Print the eval event");
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, options->allow_singleton,
                               [&](Communicator& comm) { return eval_here(comm, *options, *json); });
        };
    });
}

}  // namespace lockstep
