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

// A matrix of more does not fit a screen: it is printed where it is asked for.
constexpr int kClassesOnScreen = 20;

struct EvalCommand {
    StoredOptions stored;
    bool json = false;
    bool confusion = false;
};

int eval_here(Communicator& comm, const EvalCommand& options) {
    StoredSession session(comm, options.stored);
    const bool fits = !options.json && session.data().classes() <= kClassesOnScreen;
    EvalResult result = evaluate(session.context(), session.data(), options.confusion || fits);
    result.split = options.stored.split;
    result.step = session.stored().step;
    result.epoch = result.step / session.steps_per_epoch();
    if (comm.rank() != 0) return 0;
    print_result((options.json ? eval_line(result) : eval_text(result)) + "\n");
    if (!options.json && !result.confusion.empty()) print_result(confusion_text(result.confusion));
    return 0;
}

}  // namespace

void add_eval(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand(
        "eval", "Loss, accuracy, top-5 or AUC, and the confusion matrix of a trained model on a split");
    const auto options = std::make_shared<EvalCommand>();
    options->stored.add_to(*command, true);
    command->add_flag("--json", options->json, "Print the eval event");
    command->add_flag("--confusion", options->confusion,
                      "The confusion matrix, in --json and of more than 20 classes, too");
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, options->stored.allow_singleton,
                               [&](Communicator& comm) { return eval_here(comm, *options); });
        };
    });
}

}  // namespace lockstep
