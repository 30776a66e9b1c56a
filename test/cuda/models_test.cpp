// Networks of every kind of layer on GPUs, through the trainer: the bytes of the CPU's run, whatever the
// statistics of batch norm are taken over, with ranks, streams and graphs; and every loss.
#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>

#include "comm_fixture.hpp"
#include "core/log.hpp"
#include "cuda/backend/cuda_backend.hpp"
#include "cuda/backend/step_graphs.hpp"
#include "io/temp_folder.hpp"
#include "train/device.hpp"
#include "train/point.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string layer(const std::string& entries) {
    return "[[model.layers]]\n" + entries + "\n";
}

/// Residual blocks with and without a projection, two branches beside each other, and layers of every other kind.
std::string every_kind() {
    return layer("name = \"stem\"\nkind = \"conv\"\nchannels = 4\nkernel = 3\nnorm = true\nactivation = \"relu\"") +
           layer("kind = \"residual\"\nchannels = 4") + layer("kind = \"residual\"\nchannels = 6\nstride = 2") +
           layer("name = \"left\"\nkind = \"conv\"\nchannels = 3\nkernel = 1\nbias = false\nactivation = \"sigmoid\"") +
           layer(
               "name = \"right\"\nkind = \"pool\"\nfrom = \"residual2\"\nkernel = 3\nstride = 1\npadding = \"same\"") +
           layer("kind = \"concat\"\nfrom = [\"left\", \"right\"]") + layer("kind = \"lrn\"\nradius = 2") +
           layer("kind = \"batch_norm\"") + layer("kind = \"dropout\"\nrate = 0.25") + layer("kind = \"flatten\"") +
           layer("kind = \"dense\"\nunits = 5\nnorm = true\nactivation = \"relu\"") +
           layer("kind = \"dense\"\nunits = 4");
}

/// Five steps, the last of an epoch short. `settings`: lines of the config, sections last.
Config config_of(const std::string& settings) {
    const TempFolder folder;
    ConfigSources sources;
    const std::string text =
        "data.format = \"synthetic\"\ndata.samples = 29\ndata.test_samples = 9\ndata.shape = [6, 6, 3]\n"
        "batch = { size = 13, shards = 4 }\ntrain.steps = 5\noptimizer = { lr = 0.01, weight_decay = 1e-3 }\n"
        "device = { backend = \"cpu\", threads = 1 }\n" +
        settings;
    sources.files = {folder.write("job.toml", text)};
    return load_config(sources).config;
}

/// Counts how often device memory is taken or given back in passes, whose operations are planned by then. Each pass of
/// a run without a border is one call.
class WatchedPasses final : public StepGraphs {
  public:
    struct Counts {
        std::atomic<int64_t> passes = 0, changes = 0;
    };
    WatchedPasses(Backend& backend, Counts& counts)
        : context_(static_cast<CudaBackend&>(backend).context()), counts_(counts) {}
    void run(std::span<const uint64_t>, FunctionRef<void()> work) override {
        const uint64_t before = context_.memory_changes();
        work();
        counts_.changes += static_cast<int64_t>(context_.memory_changes() - before);
        ++counts_.passes;
    }

  private:
    CudaContext& context_;
    Counts& counts_;
};

struct Gpus {
    int streams = 1;
    bool graphs = false;
    bool vendor = false;
    CudaPrecision precision = CudaPrecision::kFp32;
    WatchedPasses::Counts* counts = nullptr;
};

/// With `gpus`: each rank on a device, emulated ones of its own. Null: on the CPU.
Outcome train(const Config& config, int world, const Gpus* gpus) {
    set_log(LogLevel::kQuiet, false);
    const DataSplits data = open_data(config);
    Outcome outcome;
    std::mutex mutex;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig own;
        own.config = config;
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        if (gpus != nullptr) {
            options.make_device = [&](Communicator& ranks, const Config&) {
                CudaOptions cuda;
                cuda.device = device_of(ranks.rank());
                cuda.streams = gpus->streams;
                cuda.vendor = gpus->vendor;
                cuda.precision = gpus->precision;
                DeviceChoice choice;
                choice.backend = make_cuda_backend(cuda);
                choice.exchange = make_staged_communicator(ranks, choice.backend->communication());
                if (gpus->graphs) choice.graphs = make_cuda_step_graphs(*choice.backend);
                if (gpus->counts != nullptr) {
                    choice.graphs = std::make_unique<WatchedPasses>(*choice.backend, *gpus->counts);
                }
                return choice;
            };
        }
        const TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() != 0) return;
        const std::scoped_lock lock(mutex);
        outcome = {result.sha256, without_wall(result.metrics)};
    });
    return outcome;
}

void same_as_cpu(const std::string& settings, int world, const Gpus& gpus) {
    INFO(settings << " at " << world << ", streams " << gpus.streams << ", graphs " << gpus.graphs);
    const Config config = config_of(settings);
    const Outcome cpu = train(config, 1, nullptr);
    REQUIRE(!cpu.sha256.empty());
    reset_devices(world);
    const Outcome gpu = train(config, world, &gpus);
    CHECK(gpu.sha256 == cpu.sha256);
    CHECK(gpu.metrics == cpu.metrics);
}

const std::string kShard = "data.classes = 4\nmodel.name = \"custom\"\n";
const std::string kGlobal =
    "data.classes = 4\nmodel.name = \"custom\"\nbatch_norm = { scope = \"global\", unbiased = true }\n";

}  // namespace

TEST_CASE("models: a network of every kind of layer has the CPU's bytes, normalised by shard") {
    same_as_cpu(kShard + every_kind(), 1, {1});
    same_as_cpu(kShard + every_kind(), 2, {3});
    same_as_cpu(kShard + every_kind(), 1, {2, true});
}

TEST_CASE("models: a network of every kind of layer has the CPU's bytes, normalised by the global batch") {
    same_as_cpu(kGlobal + every_kind(), 1, {2});
    same_as_cpu(kGlobal + every_kind(), 3, {1});
}

TEST_CASE("models: every loss has the CPU's bytes") {
    same_as_cpu("data.classes = 4\ntrain.label_smoothing = 0.1\nmodel = { name = \"mlp\", hidden = [7] }\n", 2, {2});
    same_as_cpu("data.classes = 2\nmodel.name = \"logistic\"\n", 2, {1});
}

TEST_CASE("models: operations that are planned take no memory of the device, from the first step on") {
    const std::vector<std::string> networks{
        kShard + every_kind(),
        "data.classes = 4\ntrain.label_smoothing = 0.1\nmodel = { name = \"mlp\", hidden = [7] }\n",
        "data.classes = 2\nmodel.name = \"logistic\"\n"};
    for (const std::string& settings : networks) {
        for (const bool vendor : {false, true}) {
            INFO(settings << (vendor ? "vendor" : "defined") << " arithmetic");
            WatchedPasses::Counts counts;
            Gpus gpus;
            gpus.streams = 2;
            gpus.vendor = vendor;
            if (vendor) gpus.precision = CudaPrecision::kBf16;
            gpus.counts = &counts;
            reset_devices(1);
            Config config = config_of(settings);
            if (vendor) config.device.arithmetic = "vendor";
            train(config, 1, &gpus);
            CHECK(counts.passes == 5);
            CHECK(counts.changes == 0);
        }
    }
}

TEST_CASE("twin: shards of other sizes have other statistics, on a GPU as well") {
    Config config = config_of(kShard + every_kind());
    const Gpus gpus;
    reset_devices(1);
    const Outcome four = train(config, 1, &gpus);
    config.batch.shards = 2;
    reset_devices(1);
    CHECK(train(config, 1, &gpus).sha256 != four.sha256);
}
