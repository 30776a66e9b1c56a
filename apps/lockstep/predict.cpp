// lockstep predict: the class and the probabilities of every sample of a split, in data order, the same file at any
// number of ranks.
#include <memory>
#include <optional>
#include <span>

#include "commands.hpp"
#include "io/atomic_file.hpp"
#include "launch.hpp"
#include "stored.hpp"

namespace lockstep {
namespace {

int predict_here(Communicator& comm, const StoredOptions& options, const std::string& out, bool names) {
    StoredSession session(comm, options);
    std::optional<AtomicFile> file;
    if (comm.rank() == 0 && !out.empty()) file.emplace(out);
    predict(
        session.context(), session.data(),
        [&](const std::string& text) { file ? file->write(std::as_bytes(std::span(text))) : print_result(text); },
        names);
    if (file) file->commit();
    return 0;
}

}  // namespace

void add_predict(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("predict", "Class and probabilities of every sample as CSV: index,label,class,p0,p1,…");
    const auto options = std::make_shared<StoredOptions>();
    const auto out = std::make_shared<std::string>();
    options->add_to(*command, true);
    const auto names = std::make_shared<bool>(false);
    command->add_option("--out", *out, "CSV file (default stdout)")->type_name("FILE.csv");
    command->add_flag("--names", *names,
                      "Behind these the names of the label's and the predicted class and of the sample's file, where "
                      "the data have them: label_name,class_name,file");
    command
        ->add_option("--input", options->input,
                     "Pictures without labels, in place of a split: files, or folders that are searched")
        ->type_name("PATH")
        ->allow_extra_args(false);
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, options->allow_singleton,
                               [&](Communicator& comm) { return predict_here(comm, *options, *out, *names); });
        };
    });
}

}  // namespace lockstep
