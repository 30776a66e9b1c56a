#include "explain/comparison.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "comm/communicator.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "explain/worker_reading.hpp"
#include "train/trainer.hpp"

namespace lockstep {
namespace {

/// All samples of a data set of somebody else's.
std::unique_ptr<Dataset> borrowed(const Dataset& data) {
    std::vector<int64_t> all(static_cast<std::size_t>(data.size()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    return std::make_unique<SampleView>(data, std::move(all));
}

/// The trainer's own evaluations, after each epoch.
RunOutcome outcome_of(const TrainResult& result) {
    RunOutcome outcome;
    outcome.updates = result.steps;
    std::istringstream lines(result.metrics);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        if (event["event"] != "eval") continue;
        const bool classes = event.contains("accuracy");
        outcome.epochs.push_back(
            {event["epoch"], event["loss"],
             classes ? event["accuracy"].get<double>() : std::numeric_limits<double>::quiet_NaN()});
    }
    return outcome;
}

/// What neither run would follow is refused, since the comparison would be of another job.
void check_followed(const Config& config, const Facts& facts) {
    if (!config.train.stop_metric.empty()) {
        fail(ErrorKind::kUsage,
             "explain --run: train.stop_metric = \"{}\" follows each run's own evaluations; leave it out, or "
             "add --set 'train.stop_metric=\"\"'",
             config.train.stop_metric);
    }
    const int64_t per_epoch = facts.ours.steps_per_epoch;
    const int64_t steps = facts.ours.steps;
    if (steps % per_epoch != 0) {
        fail(ErrorKind::kUsage,
             "explain --run: train.steps = {} is no whole number of epochs, of {} steps each, and whole ones are "
             "compared; set train.epochs, or train.steps to {}",
             steps, per_epoch, (steps / per_epoch + 1) * per_epoch);
    }
    if (config.reduce.algorithm == "native") {
        fail(ErrorKind::kUsage,
             "explain --run: reduce.algorithm = \"native\" adds in an order of the transport's, which is not compared; "
             "set it to \"canonical\"");
    }
    if (config.device.backend == "cuda") {
        fail(ErrorKind::kUsage, "explain --run trains on CPUs, and device.backend = \"cuda\"; set it to \"cpu\"");
    }
}

/// Whole epochs with an evaluation after each, and nothing else.
LoadedConfig plain(const LoadedConfig& loaded, int64_t epochs) {
    LoadedConfig own = loaded;
    own.config.train.epochs = epochs;
    own.config.train.steps.reset();
    own.config.eval.every_epochs = 1;
    own.config.eval.every_steps = 0;
    own.config.data.validation = 0;  // the data are there, split already
    own.config.checkpoint.best.clear();
    own.config.check.trace = "off";
    own.config.log.dir.clear();
    own.config.device.backend = "cpu";
    own.config.device.arithmetic = "defined";
    own.config.device.precision = "fp32";
    return own;
}

TrainResult train_in_world(int world, const LoadedConfig& loaded, const DataSplits& data) {
    TrainOptions options;
    options.progress.style = ProgressStyle::kNone;
    TrainResult first;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig own = loaded;
        if (world > 1) own.config.device.threads = 1;
        TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() == 0) first = std::move(result);
    });
    return first;
}

}  // namespace

Comparison compare(const Facts& facts, const LoadedConfig& loaded, const DataSplits& data) {
    check_followed(loaded.config, facts);
    const LoadedConfig own = plain(loaded, facts.question.epochs);
    Comparison comparison;
    const std::vector<Cause> causes = causes_of(facts, own.config, comparison.idle);
    check_rules(scheme_rules(facts), own.config);
    for (const Cause& cause : causes) check_rules(cause.rules, own.config);
    const Dataset& judge = data.test ? *data.test : data.validation ? *data.validation : *data.train;
    const DataSplits splits{borrowed(*data.train), borrowed(judge)};
    comparison.evaluated = data.test ? "test" : data.validation ? "validation" : "training";
    comparison.worlds = {1};
    const int most = static_cast<int>(std::min<int64_t>(facts.question.workers, own.config.batch.shards));
    if (most > 1) comparison.worlds.push_back(most);
    for (const int world : comparison.worlds) {
        inform("explain: Lockstep's own run on {} rank{}", world, world == 1 ? "" : "s");
        const TrainResult result = train_in_world(world, own, splits);
        if (world == 1) {
            comparison.sha256 = result.sha256;
            comparison.lockstep = {"lockstep", "the mean gradient of every batch, once", outcome_of(result)};
        } else if (result.sha256 != comparison.sha256) {
            fail(ErrorKind::kMismatch,
                 "explain: {} ranks end with other weights than 1 rank ({} and {}); that is a bug", world,
                 result.sha256, comparison.sha256);
        }
    }
    for (const Cause& cause : causes) {
        inform("explain: {} alone ({})", cause.name, cause.why);
        comparison.causes.push_back({cause.name, cause.why, train_under(cause.rules, own.config, splits)});
    }
    inform("explain: all rules of {} together", facts.scheme->name);
    comparison.scheme = {std::string(facts.scheme->name), "all together",
                         train_under(scheme_rules(facts), own.config, splits)};
    return comparison;
}

}  // namespace lockstep
