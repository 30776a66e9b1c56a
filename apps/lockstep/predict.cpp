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

int predict_here(Communicator& comm, const StoredOptions& options, const std::string& out) {
    StoredSession session(comm, options);
    std::optional<AtomicFile> file;
    if (comm.rank() == 0 && !out.empty()) file.emplace(out);
    predict(session.context(), session.data(),
            [&](const std::string& text) { file ? file->write(std::as_bytes(std::span(text))) : print_result(text); });
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
    command->add_option("--out", *out, "CSV file (default stdout)")->type_name("FILE.csv");
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, options->allow_singleton,
                               [&](Communicator& comm) { return predict_here(comm, *options, *out); });
        };
    });
}

}  // namespace lockstep
