// lockstep bench: the benchmarks of this program, as JSON: a training step, the reduction of its gradient, its input.
// Each measures the trainer's own stages, on the job that the config describes.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "comm/thread_communicator.hpp"
#include "commands.hpp"
#include "launch.hpp"
#include "train/agreement.hpp"
#include "train/bench_input.hpp"
#include "train/bench_reduce.hpp"
#include "train/bench_step.hpp"
#include "train/start_check.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostThreads = 256;
constexpr int kMostRanks = 64;  // as threads of this process
constexpr double kMostSeconds = 3600;

struct BenchCommand {
    ConfigOptions config;
    double seconds = 3;
    std::vector<int> threads;  // input
    int ranks = 0;             // reduce
    bool json = false;
};

Json milliseconds(const Spread& seconds) {
    return {{"median", 1e3 * seconds.median}, {"min", 1e3 * seconds.least}, {"max", 1e3 * seconds.most}};
}

/// Of one step, as parts of it.
Json shares(const StepStages& stages) {
    const double total = std::max(stages.total(), 1e-12);
    return {{"input", stages.input / total},
            {"forward", stages.forward / total},
            {"backward", stages.backward / total},
            {"reduce", stages.reduce / total},
            {"update", stages.update / total}};
}

/// What a measurement is of.
Json head(const char* benchmark, const Config& config, int world, const std::string& device) {
    return {{"benchmark", benchmark}, {"model", config.model.name}, {"device", device},
            {"world", world},         {"batch", config.batch.size}, {"shards", config.batch.shards}};
}

Json step_json(const Config& config, const StepBench& bench) {
    Json json = head("step", config, static_cast<int>(bench.ranks.size()), bench.device);
    json["steps"] = bench.steps;
    json["ms"] = milliseconds(bench.seconds);
    json["samples_per_s"] = bench.samples_per_s;
    json["ranks"] = Json::array();
    for (std::size_t r = 0; r < bench.ranks.size(); ++r) {
        const RankStages& rank = bench.ranks[r];
        json["ranks"].push_back({{"rank", r},
                                 {"host", rank.host},
                                 {"threads", rank.threads},
                                 {"samples", rank.samples},
                                 {"shares", shares(rank.stages)}});
    }
    return json;
}

Json input_json(const Config& config, const InputBench& bench) {
    const double need = bench.step.samples_per_s;
    Json json = head("input", config, static_cast<int>(bench.step.ranks.size()), bench.step.device);
    json["format"] = config.data.format;
    json["records"] = bench.records;
    json["bytes"] = bench.bytes ? Json(*bench.bytes) : Json(nullptr);
    json["shape"] = {bench.shape.height, bench.shape.width, bench.shape.channels};
    json["config_threads"] = input_threads(config);
    json["rates"] = Json::array();
    for (const InputRate& rate : bench.rates) {
        json["rates"].push_back({{"threads", rate.threads},
                                 {"records", rate.records},
                                 {"seconds", rate.seconds},
                                 {"records_per_s", rate.records_per_s},
                                 {"of_step", rate.records_per_s / need},
                                 {"limit", rate.records_per_s < need ? "input" : "compute"}});
    }
    json["step"] = {{"records_per_s", need}, {"steps", bench.step.steps}, {"ms", milliseconds(bench.step.seconds)}};
    return json;
}

Json reduce_json(const Config& config, const ReduceBench& bench, bool threads) {
    const int64_t bytes = bench.elements * static_cast<int64_t>(sizeof(float));
    Json json = head("reduce", config, bench.world, bench.device);
    json["ranks_are"] = threads ? "threads" : "processes";
    json["gradient_bytes"] = bytes;
    json["algorithms"] = Json::array();
    for (const ReduceRate& rate : bench.rates) {
        json["algorithms"].push_back({{"algorithm", rate.algorithm},
                                      {"repetitions", rate.repetitions},
                                      {"ms", milliseconds(rate.seconds)},
                                      {"bytes_sent", rate.bytes_sent},
                                      {"messages", rate.messages},
                                      {"gb_per_s", 1e-9 * static_cast<double>(bytes) / rate.seconds.median}});
    }
    return json;
}

void print_bench(Communicator& comm, const BenchCommand& command, const Json& json) {
    agree_on_first(comm, [&] { print_result(json.dump(command.json ? -1 : 2) + "\n"); });
}

LoadedConfig load(Communicator& comm, const BenchCommand& command) {
    LoadedConfig loaded;
    agree(comm, [&] { loaded = command.config.load(); });
    return loaded;
}

int step_here(Communicator& comm, const BenchCommand& command) {
    BenchJob job = open_bench_job(comm, load(comm, command));
    print_bench(comm, command, step_json(job.config(), bench_step(comm, job, command.seconds)));
    return 0;
}

int input_here(Communicator& comm, const BenchCommand& command) {
    BenchJob job = open_bench_job(comm, load(comm, command));
    const Config config = job.config();
    const std::vector<int> threads = command.threads.empty() ? std::vector{input_threads(config)} : command.threads;
    print_bench(comm, command, input_json(config, bench_input(comm, job, threads, command.seconds)));
    return 0;
}

/// Alone, the ranks are threads of this process.
int reduce_here(Communicator& comm, const BenchCommand& command) {
    LoadedConfig loaded = load(comm, command);
    check_equal_start(comm, loaded, {});
    DataFacts facts;
    agree(comm, [&] {
        if (comm.size() > 1 && command.ranks != 0)
            fail(ErrorKind::kUsage, "--ranks is for a process alone: under a launcher its {} ranks reduce",
                 comm.size());
        comm.work_aside([&] { facts = data_facts(loaded.config); });
    });
    const bool alone = comm.size() == 1;
    ReduceBench bench;
    if (alone) {
        run_thread_world(command.ranks == 0 ? 2 : command.ranks, [&](Communicator& rank) {
            ReduceBench own = bench_reduce(rank, loaded.config, facts, command.seconds);
            if (rank.rank() == 0) bench = std::move(own);
        });
    } else {
        bench = bench_reduce(comm, loaded.config, facts, command.seconds);
    }
    print_bench(comm, command, reduce_json(loaded.config, bench, alone));
    return 0;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
    CLI::App* bench = app.add_subcommand("bench", "Measure a step, its reduction or its input; alone or under mpirun");
    bench->require_subcommand(1);
    const auto command = std::make_shared<BenchCommand>();
    const auto add = [&](const char* name, const char* what, int (*action)(Communicator&, const BenchCommand&)) {
        CLI::App* sub = bench->add_subcommand(name, what);
        command->config.add_to(*sub, true);
        sub->add_option("--seconds", command->seconds, "How long each thing is measured, about")
            ->capture_default_str()
            ->check(CLI::Range(0.0, kMostSeconds))
            ->type_name("SECONDS");
        sub->add_flag("--json", command->json, "On one line");
        sub->callback([command, action, &invocation] {
            // No comparison with a NaN holds, so that a range lets it pass.
            if (std::isnan(command->seconds)) throw CLI::ValidationError("--seconds", "nan is no number of seconds");
            invocation.action = [command, action, &invocation] {
                return run_as_rank(invocation, true, [&](Communicator& comm) { return action(comm, *command); });
            };
        });
        return sub;
    };
    add("step", "Milliseconds of a training step, and the share of each stage of it", step_here);
    add("reduce", "Seconds and bytes to add up this model's gradient, canonically and natively", reduce_here)
        ->add_option("--ranks", command->ranks, "Alone: so many ranks, as threads of this process (default 2)")
        ->check(CLI::Range(1, kMostRanks))
        ->type_name("N");
    add("input", "Records a second that are read, beside what a training step takes", input_here)
        ->add_option("--threads", command->threads,
                     "Reading threads of a rank, for example 1,2,4 (default device.input_threads)")
        ->delimiter(',')
        ->check(CLI::Range(1, kMostThreads))
        ->type_name("N,…");
}

}  // namespace lockstep
