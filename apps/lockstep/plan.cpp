// lockstep plan: what a config will do at each number of ranks, told before any work.
#include <algorithm>
#include <memory>

#include "commands.hpp"
#include "launch.hpp"
#include "train/agreement.hpp"
#include "train/config_check.hpp"
#include "train/forecast.hpp"
#include "train/forecast_time.hpp"

namespace lockstep {
namespace {

constexpr int kMostRanks = 4096;
constexpr int64_t kMostSamples = 1'000'000;

struct PlanCommand {
    ConfigOptions config;
    ForecastOptions options;
    bool time = false;
    bool json = false;
};

/// Of rank 0 alone; `world`: the job's own number of ranks, which is of interest where there are several.
void plan_here(int world, const PlanCommand& command) {
    const LoadedConfig loaded = command.config.load();
    ForecastOptions options = command.options;
    if (options.worlds.empty()) options.worlds = worlds_to_show(static_cast<int>(loaded.config.batch.shards));
    if (world > 1 && std::count(options.worlds.begin(), options.worlds.end(), world) == 0) {
        options.worlds.insert(std::upper_bound(options.worlds.begin(), options.worlds.end(), world), world);
    }
    const DataFacts facts = data_facts(loaded.config);
    Forecast forecast = make_forecast(loaded.config, facts, options);
    check_weights(loaded.config, facts);
    if (command.time) time_steps(loaded.config, *open_data(loaded.config).train, forecast);
    command.json ? print_result(forecast_json(forecast) + "\n") : print_text(forecast_text(forecast));
}

}  // namespace

void add_plan(CLI::App& app, Invocation& invocation) {
    CLI::App* plan = app.add_subcommand(
        "plan", "Before any work: steps, learning rates, who reads what, messages, memory at each number of ranks");
    const auto command = std::make_shared<PlanCommand>();
    command->config.add_to(*plan, true);
    plan->add_option("--ranks", command->options.worlds,
                     "Numbers of ranks, for example 1,2,3,8,64 (default 1, 2, 4 … batch.shards)")
        ->delimiter(',')
        ->check(CLI::Range(1, kMostRanks))
        ->type_name("N,…");
    plan->add_option("--samples", command->options.samples, "The first K sample indices of the first steps, too")
        ->check(CLI::Range(int64_t{1}, kMostSamples))
        ->type_name("K");
    plan->add_option("--lr-at", command->options.lr_at, "The learning rate of these steps, too")
        ->delimiter(',')
        ->type_name("STEP,…");
    plan->add_flag("--time", command->time, "Time a few steps on this machine, which reads the data");
    plan->add_flag("--json", command->json, "One JSON document, with every rank");
    plan->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, true, [&](Communicator& comm) {
                agree_on_first(comm, [&] { comm.work_aside([&] { plan_here(comm.size(), *command); }); });
                return 0;
            });
        };
    });
}

}  // namespace lockstep
