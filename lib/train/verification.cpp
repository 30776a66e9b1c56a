#include "train/verification.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "config/key_table.hpp"
#include "core/version.hpp"
#include "train/agreement.hpp"
#include "train/device.hpp"
#include "train/settings.hpp"
#include "train/start_check.hpp"
#include "train/world_rounds.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// This machine's, best first. Scalar code does the same, some 70 times slower: it is left out where there is another.
std::vector<std::string> own_isas() {
    std::vector<std::string> isas;
    for (const Isa isa : available_isas()) {
        if (isa != Isa::kScalar) isas.emplace_back(isa_name(isa));
    }
    if (isas.empty()) isas.emplace_back(isa_name(Isa::kScalar));
    return isas;
}

int64_t gradient_bytes(const Config& config, const Dataset& data) {
    const std::unique_ptr<Backend> backend = make_cpu_backend({isa_of(config.device.isa), 1});
    const Network network(model_spec(config, data.shape(), data.classes(), data.columns()), *backend);
    return network.parameters().flat_elements() * static_cast<int64_t>(sizeof(float));
}

/// What every rank of the job has.
WorldMeans common_means(Communicator& job, const Config& config, const Dataset& data) {
    WorldMeans own;
    own.ranks = job.size();
    own.threads = fair_threads(job);
    own.isas = own_isas();
    agree(job, [&] { own.gradient_bytes = gradient_bytes(config, data); });
    WorldMeans means = own;
    for (const std::string& text : job.all_gather(json{{"threads", own.threads}, {"isas", own.isas}}.dump())) {
        const json other = json::parse(text);
        means.threads = std::min(means.threads, other.at("threads").get<int>());
        const auto theirs = other.at("isas").get<std::vector<std::string>>();
        std::erase_if(means.isas,
                      [&](const std::string& isa) { return std::count(theirs.begin(), theirs.end(), isa) == 0; });
    }
    if (means.isas.empty()) means.isas.emplace_back(isa_name(Isa::kScalar));  // which all have
    return means;
}

std::vector<int> worlds_of(const VerifyOptions& options, int ranks) {
    std::vector<int> worlds = options.worlds.empty() ? worlds_to_verify(ranks) : options.worlds;
    if (worlds.size() == 1) worlds.push_back(worlds.front());
    return worlds;
}

}  // namespace

Verification verify_on(Communicator& job, LoadedConfig loaded, const DataSplits& data, const VerifyOptions& options) {
    job.set_timeout(loaded.config.device.timeout_s);
    const StartFacts facts{version(), kNumericFingerprint, data.train->fingerprint(),
                           data.test ? data.test->fingerprint() : ""};
    check_equal_start(job, loaded, facts);
    // Which worlds there are is one decision for all: rank 0's settings of its device are taken.
    loaded.config.device = config_from_json(job.broadcast(0, config_to_json(loaded.config))).device;
    const Config& config = loaded.config;
    const std::vector<int> worlds = worlds_of(options, job.size());
    std::optional<RunPlan> plan;
    int64_t steps = 0;
    agree(job, [&] {
        plan = make_run_plan(config, data.train->size());
        if (options.steps < 1) fail(ErrorKind::kUsage, "--steps {}: at least 1", options.steps);
        steps = std::min(options.steps, plan->total_steps);
        if (options.fault) check_fault(*options.fault, worlds.back(), steps, "--fault");
    });
    const WorldMeans means = common_means(job, config, *data.train);
    const InitialWeights weights = read_initial_weights(job, config);
    const WorldTask task{config, *plan, *data.train, weights};
    Verification verification = WorldRounds(job, task, cast_worlds(worlds, config, means), steps, options.fault).run();
    verification.config = loaded.name;
    verification.algorithm = config.reduce.algorithm;
    return verification;
}

Verification verify(Communicator& job, LoadedConfig loaded, const VerifyOptions& options) {
    job.set_timeout(loaded.config.device.timeout_s);
    DataSplits data;
    agree(job, [&] { job.work_aside([&] { data = open_data(loaded.config); }); });
    return verify_on(job, std::move(loaded), data, options);
}

}  // namespace lockstep
