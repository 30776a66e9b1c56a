// Batch norm in a run: both scopes give the same bytes on any number of ranks, with passes, with memory of a device's
// own, through a stop and a resume; and running values are in the files.
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "backend/separate_memory_communicator.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/safetensors.hpp"
#include "train/device.hpp"
#include "train/legs.hpp"
#include "train/run_diff.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// ResNet-20 on small samples; the last batch of an epoch leaves shards empty.
Job residual_job() {
    Job job;
    job.model = "resnet20";
    job.samples = 37;
    job.batch = 16;
    job.steps = 4;
    return job;
}

void set_scope(Config& config, const std::string& scope) {
    config.data.shape = {8, 8, 1};
    config.data.test_samples = 20;
    config.batch_norm.scope = scope;
}

DeviceChoice separate_device(Communicator& comm, const Config&) {
    DeviceChoice choice;
    auto backend = std::make_unique<SeparateMemoryBackend>(make_cpu_backend({Isa::kAuto, 1}));
    choice.exchange = std::make_unique<SeparateMemoryCommunicator>(comm, *backend);
    choice.backend = std::move(backend);
    return choice;
}

Outcome run_scoped(const Job& job, const std::string& scope, int world, int64_t micro = 0, bool on_separate = false) {
    set_log(LogLevel::kQuiet, false);
    LoadedConfig loaded = config_of(job);
    set_scope(loaded.config, scope);
    loaded.config.batch.micro = micro;
    return outcome_on(loaded.config, open_data(loaded.config), world, {},
                      [&](LoadedConfig& own, TrainOptions& options, int rank) {
                          own.config.device.threads = 1 + rank % 2;
                          if (on_separate) options.make_device = separate_device;
                      });
}

/// A rank whose own work takes longer.
class Slow final : public StepWatcher {
  public:
    explicit Slow(std::chrono::milliseconds by) : by_(by) {}
    void batch_read(const Batch&) override { std::this_thread::sleep_for(by_); }

  private:
    std::chrono::milliseconds by_;
};

}  // namespace

TEST_CASE("batch norm in both scopes gives the same bytes on 1, 2, 3, 4 and 8 ranks") {
    const Job job = residual_job();
    std::vector<Outcome> expected;
    for (const char* const scope : {"shard", "global"}) {
        expected.push_back(run_scoped(job, scope, 1));
        REQUIRE(expected.back().sha256.size() == 64);
        for (const int world : {2, 3, 4, 8}) {
            CAPTURE(scope, world);
            CHECK(run_scoped(job, scope, world) == expected.back());
        }
        CHECK(run_scoped(job, scope, 3, 0, true) == expected.back());
    }
    CHECK(expected[0] != expected[1]);
    CHECK(run_scoped(job, "shard", 1, 3) == expected[0]);
    CHECK(run_scoped(job, "shard", 3, 1) == expected[0]);
    Job other = job;
    other.shards = 4;
    CHECK(run_scoped(other, "shard", 1) != expected[0]);
}

TEST_CASE("the wait for a slow rank counts as waiting in both scopes, at whatever place of the step ranks meet") {
    for (const char* const scope : {"shard", "global"}) {
        Config config = config_of(residual_job()).config;
        set_scope(config, scope);
        const DataSplits data = open_data(config);
        const RunPlan plan = make_run_plan(config, data.train->size());
        std::vector<double> waited(2);
        run_thread_world(2, [&](Communicator& comm) {
            const auto backend = make_cpu_backend({Isa::kAuto, 1});
            StepEngine engine(comm, *backend, config, plan, *data.train, {});
            engine.restore({});
            engine.step();
            Slow slow(std::chrono::milliseconds(comm.rank() == 1 ? 400 : 0));
            engine.watch(slow);
            const double before = engine.seconds_waiting();
            engine.step();
            waited[static_cast<std::size_t>(comm.rank())] = engine.seconds_waiting() - before;
        });
        CAPTURE(scope, waited);
        CHECK(waited[0] > 0.2);  // the other half is for a machine with much else to do
    }
}

TEST_CASE("passes that do not hold the batch are refused with scope global, on all ranks alike") {
    for (const int world : {1, 3}) {
        try {
            run_scoped(residual_job(), "global", world, 2);
            FAIL("trained");
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::kUsage);
            CHECK(std::string(e.what()).find("batch.micro = 2") != std::string::npos);
        }
    }
    CHECK(run_scoped(residual_job(), "global", 2, 8) == run_scoped(residual_job(), "global", 1));
}

TEST_CASE("diff finds two runs with batch norm equal, and names what parts two scopes") {
    const TemporaryFolder folder;
    for (const std::string scope : {"shard", "global"}) {
        const auto change = [&](Config& config) {
            set_scope(config, scope);
            config.check.trace = "hash";
        };
        run_leg(residual_job(), folder / (scope + "1"), {1}, "", change);
        run_leg(residual_job(), folder / (scope + "3"), {3}, "", change);
    }
    CHECK_FALSE(diff_runs(folder / "shard1", folder / "shard3").first.has_value());
    CHECK_FALSE(diff_runs(folder / "global1", folder / "global3").first.has_value());
    CHECK(diff_runs(folder / "shard1", folder / "global1").first.has_value());
}

TEST_CASE("stopped and resumed at another number of ranks, running values go on") {
    const Job job = residual_job();
    for (const std::string scope : {"shard", "global"}) {
        const TemporaryFolder folder;
        const auto change = [&](Config& config) { set_scope(config, scope); };
        run_leg(job, folder / "whole", {1}, "", change);
        REQUIRE(run_leg(job, folder / "legs", {4, 1, 1}, "", change).stopped);
        REQUIRE_FALSE(run_leg(job, folder / "legs", {3}, "", change).stopped);
        CHECK(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
        CHECK(without_wall(text_of(folder / "legs/metrics.jsonl")) ==
              without_wall(text_of(folder / "whole/metrics.jsonl")));
        const std::string text = text_of(folder / "whole/model.safetensors");
        const auto bytes = std::as_bytes(std::span(text));
        const SafetensorsFile file = SafetensorsFile::parse({bytes.begin(), bytes.end()}, "model");
        const TensorView* const variance = file.find("bn1.running_var");
        REQUIRE(variance != nullptr);
        float first = 0;
        std::memcpy(&first, variance->bytes.data(), sizeof first);
        CHECK(first != 1.0F);
    }
}
