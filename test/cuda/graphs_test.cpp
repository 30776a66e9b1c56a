// A training step as one CUDA graph gives the bits of the CPU, as the same step call by call does; and what a graph may
// not outlive.
#include <catch2/catch.hpp>

#include <cstring>

#include "comm_fixture.hpp"
#include "cuda/backend/step_graphs.hpp"
#include "train/device.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Sums over the ranks of a run.
struct Counts {
    std::atomic<int64_t> queued = 0, captured = 0, launched = 0;
};

/// Counts, and may forget one number of the key.
class WatchedGraphs final : public StepGraphs {
  public:
    static constexpr std::size_t kNothing = 1000;
    WatchedGraphs(std::unique_ptr<CudaStepGraphs> graphs, Counts& counts, std::size_t forgotten)
        : graphs_(std::move(graphs)), counts_(counts), forgotten_(forgotten) {}
    ~WatchedGraphs() override {
        counts_.queued += graphs_->counts().queued;
        counts_.captured += graphs_->counts().captured;
        counts_.launched += graphs_->counts().launched;
    }
    WatchedGraphs(const WatchedGraphs&) = delete;
    WatchedGraphs& operator=(const WatchedGraphs&) = delete;
    void run(std::span<const uint64_t> key, FunctionRef<void()> work) override {
        std::vector<uint64_t> passed(key.begin(), key.end());
        if (forgotten_ < passed.size()) passed[forgotten_] = 0;
        graphs_->run(passed, work);
    }

  private:
    std::unique_ptr<CudaStepGraphs> graphs_;
    Counts& counts_;
    std::size_t forgotten_;
};

struct Settings {
    int streams = 1;
    int64_t micro = 0;
    bool evaluates = false;                           // after each epoch
    bool scaled = false;                              // the loss, by a factor that changes
    std::size_t forgotten = WatchedGraphs::kNothing;  // of the key
};

/// Of the run on GPUs and of that on the CPU. An evaluation takes and gives back memory, after which graphs are
/// captured anew: without it they outlive an epoch.
void common(LoadedConfig& loaded, TrainOptions& options, const Settings& settings) {
    loaded.config.eval.every_epochs = settings.evaluates ? 1 : 0;
    if (settings.scaled) options.loss_scale = LossScaleRules{2, 9};
}

Spoil with_graphs(const Settings& settings, Counts& counts) {
    return {[&counts, settings](LoadedConfig& loaded, TrainOptions& options, int) {
        common(loaded, options, settings);
        loaded.config.batch.micro = settings.micro;
        options.make_device = [&counts, settings](Communicator& comm, const Config&) {
            CudaOptions cuda;
            cuda.device = device_of(comm.rank());
            cuda.streams = settings.streams;
            DeviceChoice choice;
            choice.backend = make_cuda_backend(cuda);
            choice.exchange = make_staged_communicator(comm, choice.backend->communication());
            choice.graphs =
                std::make_unique<WatchedGraphs>(make_cuda_step_graphs(*choice.backend), counts, settings.forgotten);
            return choice;
        };
    }};
}

/// Three epochs of seven steps, the last of which is short.
Job job_of(const std::string& model, double dropout = 0) {
    Job job;
    job.model = model;
    job.dropout = dropout;
    job.samples = 100;
    job.batch = 16;
    job.shards = 4;
    job.steps = 21;
    return job;
}

Outcome on_cpu(const Job& job, const Settings& settings) {
    return run(job, {1, {1}, {"auto"}, 4096, 32},
               {[&](LoadedConfig& loaded, TrainOptions& options, int) { common(loaded, options, settings); }});
}

void same_as_cpu(const Job& job, int world, const Settings& settings) {
    INFO(job.describe() << " at " << world << ", streams " << settings.streams << ", micro " << settings.micro);
    reset_devices(world);
    Counts counts;
    CHECK(run(job, {world, {1}, {"auto"}, 4, 0}, with_graphs(settings, counts)) == on_cpu(job, settings));
    CHECK(counts.launched > counts.captured);
    CHECK(counts.launched + counts.queued >= int64_t{world} * job.steps);
}

}  // namespace

TEST_CASE("graphs: mlp and lenet with dropout over epochs with short last batches give the CPU's bits") {
    for (const int streams : {1, 3}) {
        same_as_cpu(job_of("mlp"), 1, {streams});
        same_as_cpu(job_of("lenet", 0.4), 1, {streams});
    }
    same_as_cpu(job_of("mlp", 0.3), 1, {1, 0, true});
}

TEST_CASE("graphs: ranks, passes and shards that differ from step to step change no bit") {
    same_as_cpu(job_of("mlp", 0.3), 2, {});
    same_as_cpu(job_of("lenet", 0.4), 2, {2, 8});
    Job moving = job_of("mlp");
    moving.layout = "epoch";
    same_as_cpu(moving, 1, {1, 5});
}

TEST_CASE("graphs: a loss scale that changes is part of what a graph is known by") {
    same_as_cpu(job_of("mlp"), 1, {1, 0, false, true});
}

TEST_CASE("twin: graphs that are not known by the epoch repeat the first epoch's dropout") {
    constexpr std::size_t kEpoch = 9;
    const Job job = job_of("mlp", 0.4);
    reset_devices(1);
    Counts counts;
    Settings settings;
    settings.forgotten = kEpoch;
    CHECK_FALSE(run(job, {1, {1}, {"auto"}, 4, 0}, with_graphs(settings, counts)) == on_cpu(job, settings));
    CHECK(counts.launched > 0);
}

TEST_CASE("a graph is captured when its key comes again, and anew when memory has moved") {
    reset_devices(1);
    const std::unique_ptr<Backend> backend = backend_on(0);
    const auto graphs = make_cuda_step_graphs(*backend);
    OnDevice<float> x(*backend, {1, 2, 3});
    backend->synchronize();
    int calls = 0;
    const auto doubled = [&] {
        ++calls;
        backend->add(backend->main(), 3, x.data(), x.data(), x.data());
    };
    const auto is = [&](const CudaStepGraphs::Counts& expected, float first) {
        const CudaStepGraphs::Counts& counts = graphs->counts();
        CHECK(std::memcmp(&counts, &expected, sizeof counts) == 0);
        backend->synchronize();
        CHECK(x.read() == std::vector<float>{first, 2 * first, 3 * first});
    };
    const uint64_t key[] = {7, 1};
    graphs->run(key, doubled);
    is({1, 0, 0}, 2);
    graphs->run(key, doubled);
    is({1, 1, 1}, 4);
    graphs->run(key, doubled);
    graphs->run(key, doubled);
    is({1, 1, 3}, 16);
    CHECK(calls == 2);
    backend->allocate(16);
    graphs->run(key, doubled);
    is({2, 1, 3}, 32);
    graphs->run(key, doubled);
    is({2, 2, 4}, 64);
    for (uint64_t other = 0; other < 2 * CudaStepGraphs::kMost; ++other) {  // as many as drive the first one out
        const uint64_t one[] = {other};
        graphs->run(one, [] {});
    }
    graphs->run(key, doubled);
    is({3 + 2 * int64_t{CudaStepGraphs::kMost}, 2, 4}, 128);
}

TEST_CASE("work that fails while it is captured leaves the stream as it was") {
    reset_devices(1);
    const std::unique_ptr<Backend> backend = backend_on(0);
    const auto graphs = make_cuda_step_graphs(*backend);
    OnDevice<float> x(*backend, {1, 2, 3});
    backend->synchronize();
    bool fails = false;
    const auto work = [&] {
        backend->add(backend->main(), 3, x.data(), x.data(), x.data());
        if (fails) fail(ErrorKind::kRuntime, "planted");
    };
    const uint64_t key[] = {1};
    graphs->run(key, work);
    fails = true;
    CHECK_THROWS_WITH(graphs->run(key, work), "planted");
    fails = false;
    graphs->run(key, work);
    graphs->run(key, work);
    backend->synchronize();
    CHECK(x.read() == std::vector<float>{8, 16, 24});
}
