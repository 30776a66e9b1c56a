// lockstep explain: what another trainer's rules would have done with a job, beside what Lockstep does with it.
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "data/data_facts.hpp"
#include "explain/comparison.hpp"
#include "explain/example.hpp"
#include "explain/facts.hpp"
#include "launch.hpp"

namespace lockstep {
namespace {

constexpr int kMostWorkers = 4096;
constexpr int64_t kMostCount = int64_t{1} << 40;
constexpr int64_t kMostEpochs = 1'000'000;

struct ExplainCommand {
    std::string scheme;
    int workers = 1;
    int gpus = 0;  // 0: one, or the example's two
    std::vector<std::string> files, sets;
    int64_t samples = 0, batch = 0, epochs = 0, worker_batch = 0;  // 0: not given
    std::string shift = "0";
    bool example = false;
    bool run = false;
    bool json = false;
};

LoadedConfig load(const ExplainCommand& command) {
    LoadedConfig loaded =
        load_config({command.files, config_environment(), command.sets, std::filesystem::current_path().string()});
    for (const std::string& warning : loaded.warnings) warn_line(warning);
    return loaded;
}

/// The example has a model, data and a length of its own: what would change them is refused, not passed over.
void check_example(const ExplainCommand& command) {
    std::vector<std::string> idle;
    if (!command.files.empty()) idle.emplace_back("-c");
    if (command.samples > 0) idle.emplace_back("--samples");
    if (command.batch > 0) idle.emplace_back("--batch");
    if (command.epochs > 0) idle.emplace_back("--epochs");
    if (command.worker_batch > 0) idle.emplace_back("--worker-batch");
    if (command.shift != "0") idle.emplace_back("--shift-ratio");
    if (command.run) idle.emplace_back("--run");
    for (const std::string& set : command.sets) {
        if (!set.starts_with("optimizer.")) idle.push_back("--set " + set);
    }
    if (idle.empty()) return;
    fail(ErrorKind::kUsage,
         "explain --example has a model and data of its own, and takes --set optimizer.KEY=VALUE alone: leave out {}",
         fmt::join(idle, ", "));
}

int show_example(const ExplainCommand& command) {
    check_example(command);
    const Scheme& scheme = scheme_named(command.scheme);
    const int gpus = command.gpus > 0 ? command.gpus : kExampleGpus;
    const Config::Optimizer optimizer = example_optimizer(command.sets);
    const auto losses = run_example(scheme, command.workers, gpus, optimizer);
    print_result(command.json ? example_json(scheme, gpus, optimizer, losses) + "\n" : example_text(scheme, losses));
    return 0;
}

bool names_config(const ExplainCommand& command) {
    return !command.files.empty() || !command.sets.empty();
}

/// `loaded`: the config, where one is named.
Question question_of(const ExplainCommand& command, const LoadedConfig& loaded) {
    Question q;
    if (names_config(command)) {
        Config config = loaded.config;
        if (command.batch > 0) config.batch.size = command.batch;
        if (command.epochs > 0) config.train.steps.reset();
        // With --samples the data need not be there.
        q = question_of(config, command.samples > 0 ? DataFacts{.samples = command.samples, .shape = {0, 0, 0}}
                                                    : data_facts(config));
    } else if (command.samples == 0 || command.batch == 0) {
        fail(ErrorKind::kUsage,
             "explain: of what job? Name a config (-c FILE), or --samples and --batch, or --example");
    }
    if (command.samples > 0) q.samples = command.samples;
    if (command.batch > 0) q.batch = command.batch;
    if (command.epochs > 0) q.epochs = command.epochs;
    if (command.worker_batch > 0) q.worker_batch = command.worker_batch;
    q.workers = command.workers;
    q.gpus = command.gpus > 0 ? command.gpus : 1;
    q.shifted = command.shift == "real";
    return q;
}

/// Trains the config as it is: what stands in for a part of it would be of another job.
std::string run(const ExplainCommand& command, const Facts& facts, const LoadedConfig& loaded) {
    const Question& q = facts.question;
    if (!names_config(command) || command.samples > 0 || command.batch > 0) {
        fail(ErrorKind::kUsage, "explain --run trains a config: name it with -c, without --samples and --batch");
    }
    if (q.gpus > 1) fail(ErrorKind::kUsage, "explain --run has workers of one GPU each: leave --gpus {} out", q.gpus);
    const Comparison comparison = compare(facts, loaded, open_data(loaded.config));
    return command.json ? comparison_json(comparison) : comparison_text(comparison);
}

int show(const ExplainCommand& command) {
    if (command.example) return show_example(command);
    const Scheme& scheme = scheme_named(command.scheme);
    if (command.shift == "real" && scheme.reading != Reading::kSameSamples) {
        fail(ErrorKind::kUsage, "--shift-ratio real: workers of {} have none; leave it out", scheme.name);
    }
    const LoadedConfig loaded = names_config(command) ? load(command) : LoadedConfig();
    const Facts facts = explain(scheme, question_of(command, loaded));
    const std::string outcome = command.run ? run(command, facts, loaded) : "";
    print_result(command.json ? facts_json(facts, outcome) + "\n" : facts_text(facts) + outcome);
    return 0;
}

std::string footer_text() {
    std::string text =
        "The job is that of -c FILE (or --set), of --samples with --batch, or --example: one is needed.\n\nSchemes:\n";
    for (const Scheme& scheme : schemes()) text += fmt::format("  {:<26} {}\n", scheme.name, scheme.system);
    text.pop_back();
    return text;
}

}  // namespace

void add_explain(CLI::App& app, Invocation& invocation) {
    CLI::App* explain = app.add_subcommand(
        "explain", "What another trainer's rules would have done with a job: steps, samples, batch and learning rate");
    const auto command = std::make_shared<ExplainCommand>();
    std::string names;
    for (const Scheme& scheme : schemes()) names.append(names.empty() ? "" : "|").append(scheme.name);
    explain->footer(footer_text());
    explain->add_option("--scheme", command->scheme, "Whose rules")->type_name(names)->required();
    explain->add_option("--workers", command->workers, "Workers that share the job (default 1)")
        ->check(CLI::Range(1, kMostWorkers))
        ->type_name("W");
    explain->add_option("--gpus", command->gpus, "GPUs of each worker (default 1; of the example 2)")
        ->check(CLI::Range(1, kMostWorkers))
        ->type_name("G");
    explain->add_option("-c,--config", command->files, "The job as a config file (TOML); later files win")
        ->type_name("FILE")
        ->allow_extra_args(false);
    explain->add_option("--set", command->sets, "Set one key, for example optimizer.name=nesterov")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    const auto count = [&](const char* name, int64_t& into, const char* what) {
        explain->add_option(name, into, what)->check(CLI::Range(int64_t{1}, kMostCount))->type_name("N");
    };
    count("--samples", command->samples, "Training samples, in place of the config's data");
    count("--batch", command->batch, "The batch that the script names");
    explain->add_option("--epochs", command->epochs, "Epochs (default 1, or the config's)")
        ->check(CLI::Range(int64_t{1}, kMostEpochs))
        ->type_name("N");
    count("--worker-batch", command->worker_batch,
          "What a worker takes at a time (default: by the scheme, batch or batch / W)");
    explain->add_option("--shift-ratio", command->shift, "Where tf_cnn_benchmarks' workers begin: 0, as it was, or w/W")
        ->check(CLI::IsMember({"0", "real"}))
        ->type_name("0|real");
    explain->add_flag("--example", command->example, "The scheme on a model of two weights, in float64");
    explain->add_flag("--run", command->run,
                      "Train under these rules, and under each alone, beside Lockstep's own run");
    explain->add_flag("--json", command->json, "One JSON document");
    explain->callback(
        [=, &invocation] { invocation.action = on_first_rank(invocation, [=] { return show(*command); }); });
}

}  // namespace lockstep
