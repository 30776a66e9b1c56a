// batch.micro: a step in several passes over whole shards gives the bits of one pass, on every backend, and holds less.
#include <catch2/catch.hpp>

#include "backend/separate_memory_communicator.hpp"
#include "comm/thread_communicator.hpp"
#include "train/device.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Spoil in_passes_of(int64_t micro, bool on_separate = false) {
    return {[=](LoadedConfig& loaded, TrainOptions& options, int rank) {
        loaded.config.batch.micro = rank == 1 ? 0 : micro;  // each rank follows its own
        if (!on_separate) return;
        options.make_device = [](Communicator& comm, const Config&) {
            DeviceChoice choice;
            auto backend = std::make_unique<SeparateMemoryBackend>(make_cpu_backend({Isa::kAuto, 1}));
            choice.exchange = std::make_unique<SeparateMemoryCommunicator>(comm, *backend);
            choice.backend = std::move(backend);
            return choice;
        };
    }};
}

int64_t arena_bytes(const Job& job, int64_t micro) {
    Config config = config_of(job).config;
    config.batch.micro = micro;
    const DataSplits data = open_data(config);
    const RunPlan plan = make_run_plan(config, data.train->size());
    const auto backend = make_cpu_backend({Isa::kAuto, 1});
    const auto alone = make_single_communicator();
    const TrainOptions options;
    StepEngine engine(*alone, *backend, config, plan, *data.train, options);
    engine.restore({});
    engine.step();
    return engine.network().arena_bytes();
}

}  // namespace

TEST_CASE("passes of one shard, two, three or all give the same weights and metrics at every world and layout") {
    for (const char* model : {"mlp", "lenet"}) {
        for (const char* layout : {"batch", "epoch"}) {
            for (const int64_t shards : {8, 7}) {
                Job job;
                job.model = model;
                job.layout = layout;
                job.shards = shards;
                job.samples = 203;
                job.batch = 48;
                job.steps = 6;
                job.dropout = 0.25;
                job.clip_norm = 0.5;
                const Outcome expected = run(job, {1, {1}, {"auto"}, 4096, 32});
                for (const int64_t micro : {1, 13, 20, 48}) {
                    for (const int world : {1, 3}) {
                        INFO(job.describe() << " micro " << micro << " at " << world);
                        CHECK(run(job, {world, {1, 2}, {"auto"}, 1, 0}, in_passes_of(micro)) == expected);
                    }
                }
                CHECK(run(job, {2, {1}, {"auto"}, 1, 0}, in_passes_of(7, true)) == expected);
            }
        }
    }
}

TEST_CASE("passes that leave shards empty give the same weights") {
    Job job;
    job.samples = 29;
    job.batch = 5;
    job.shards = 8;
    job.steps = 7;
    const Outcome expected = run(job, {1, {1}, {"auto"}, 4096, 32});
    for (const int64_t micro : {1, 2, 3}) {
        CHECK(run(job, {1, {1}, {"auto"}, 4096, 32}, in_passes_of(micro)) == expected);
        CHECK(run(job, {3, {1}, {"auto"}, 4096, 0}, in_passes_of(micro)) == expected);
    }
}

TEST_CASE("an eighth of the samples at once needs about an eighth of the activations") {
    Job job;
    job.model = "lenet";
    job.batch = 96;
    job.steps = 1;
    const int64_t all = arena_bytes(job, 0);
    const int64_t shard = arena_bytes(job, 12);
    CAPTURE(all, shard);
    CHECK(arena_bytes(job, 1) == shard);  // never less than a shard
    CHECK(shard < all / 3);
    CHECK(arena_bytes(job, 96) == all);
}
