// Training on a device whose memory the host does not see, and whose streams run late, gives the bytes that the CPU
// gives: weights, metrics, traces, files, messages. A host that touches the device's memory ends this test at once.
#include <catch2/catch.hpp>
#include <limits>

#include "backend/separate_memory_communicator.hpp"
#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "train/checkpoint.hpp"
#include "train/device.hpp"
#include "train/evaluator.hpp"
#include "train/model_file.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kDetail = "conv1 for 6 rows: the algorithm of this test";

DeviceChoice separate(Communicator& comm, SeparateMemoryBackend::Traits traits = {}) {
    DeviceChoice choice;
    traits.details = {kDetail};
    auto backend = std::make_unique<SeparateMemoryBackend>(make_cpu_backend({Isa::kAuto, 1}), traits);
    choice.exchange = std::make_unique<SeparateMemoryCommunicator>(comm, *backend);
    choice.backend = std::move(backend);
    return choice;
}

Spoil on_separate(const SeparateMemoryBackend::Traits& traits = {}) {
    return {[=](LoadedConfig&, TrainOptions& options, int) {
        options.make_device = [=](Communicator& comm, const Config&) { return separate(comm, traits); };
    }};
}

Job job_of(const std::string& model) {
    Job job;
    job.model = model;
    job.samples = 203;
    job.batch = 50;
    job.steps = 7;
    return job;
}

struct Files {
    std::string sha256, metrics, trace;
    bool operator==(const Files&) const = default;
};

/// Trains into `out` ("" = in memory) up to `steps`; the ranks below `devices` on separate memory, the others on the
/// CPU.
Files train_files(const Config& config, int world, int devices, const std::string& out = "",
                  const std::function<void(TrainOptions&)>& change = {}) {
    set_log(LogLevel::kQuiet, false);
    const DataSplits data = open_data(config);
    Files files;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig loaded;
        loaded.config = config;
        TrainOptions options;
        options.progress.style = ProgressStyle::kNone;
        options.out = out;
        options.make_device = [=](Communicator& of, const Config&) {
            if (of.rank() < devices) return separate(of);
            DeviceChoice cpu;
            cpu.backend = make_cpu_backend({Isa::kAuto, 1});
            return cpu;
        };
        if (change) change(options);
        const TrainResult result = train_on(comm, loaded, data, options);
        if (comm.rank() == 0) files = {result.sha256, without_wall(result.metrics), result.trace};
    });
    return files;
}

std::string message_of(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("separate memory: models, optimizers, worlds and layouts give the CPU's weights and metrics") {
    std::vector<Job> jobs{job_of("mlp"), job_of("lenet"), job_of("lenet"), job_of("mlp"), job_of("mlp")};
    jobs[0].optimizer = "sgd";
    jobs[1].clip_norm = 0.5;
    jobs[1].l2 = 0.01;
    jobs[2].dropout = 0.25;
    jobs[2].layout = "epoch";
    jobs[2].optimizer = "adam";
    jobs[3].shards = 2;  // at 3 ranks one has nothing to do
    jobs[3].classes = 2;
    jobs[4].shards = 7;
    jobs[4].optimizer = "adamw";
    jobs[4].op = "sum";
    for (const Job& job : jobs) {
        const Outcome expected = run(job, {1, {1}, {"auto"}, 4096, 32});
        for (const auto& [world, bucket_kib] : std::vector<std::pair<int, int64_t>>{{1, 4096}, {2, 1}, {3, 4}}) {
            INFO(job.describe() << " at " << world);
            CHECK(run(job, {world, {1}, {"auto"}, bucket_kib, 0}, on_separate()) == expected);
        }
    }
}

TEST_CASE("separate memory: native sums are those of the CPU at the same number of ranks") {
    Job job = job_of("mlp");
    job.shards = 2;
    for (const int world : {2, 3}) {
        const Spoil native{[](LoadedConfig& loaded, TrainOptions&, int) { loaded.config.reduce.algorithm = "native"; }};
        const Spoil both{[&](LoadedConfig& loaded, TrainOptions& options, int rank) {
            native.change(loaded, options, rank);
            on_separate().change(loaded, options, rank);
        }};
        CHECK(run(job, {world, {1}, {"auto"}, 1, 0}, both) == run(job, {world, {1}, {"auto"}, 1, 0}, native));
    }
}

TEST_CASE("separate memory: every rank lets every step's messages settle, with either reduction") {
    for (const char* algorithm : {"canonical", "native"}) {
        std::atomic<int> settled = 0;
        const Spoil counting{[&](LoadedConfig& loaded, TrainOptions& options, int) {
            loaded.config.reduce.algorithm = algorithm;
            options.make_device = [&](Communicator& comm, const Config&) {
                DeviceChoice choice;
                auto backend = std::make_unique<SeparateMemoryBackend>(make_cpu_backend({Isa::kAuto, 1}));
                choice.exchange = std::make_unique<SeparateMemoryCommunicator>(comm, *backend, &settled);
                choice.backend = std::move(backend);
                return choice;
            };
        }};
        run(job_of("mlp"), {3, {1}, {"auto"}, 1, 0}, counting);
        CHECK(settled == 3 * 7);
    }
}

TEST_CASE("twin: on a device whose streams do not wait for each other the numbers are others") {
    const Job job = job_of("mlp");
    SeparateMemoryBackend::Traits broken;
    broken.ignores_order = true;
    const Outcome expected = run(job, {2, {1}, {"auto"}, 1, 0});
    CHECK(run(job, {2, {1}, {"auto"}, 1, 0}, on_separate()) == expected);
    bool equal = true;
    try {
        equal = run(job, {2, {1}, {"auto"}, 1, 0}, on_separate(broken)) == expected;
    } catch (const Error&) {
        equal = false;  // a check of the run found it
    }
    CHECK_FALSE(equal);
}

TEST_CASE("separate memory: traces are the CPU's, with every rank on a device and with some") {
    Config config = config_of(job_of("lenet")).config;
    config.check.trace = "hash";
    config.check.replicas_every = 2;
    config.optimizer.name = "nesterov";
    const Files expected = train_files(config, 3, 0);
    REQUIRE_FALSE(expected.trace.empty());
    CHECK(train_files(config, 3, 3) == expected);
    CHECK(train_files(config, 3, 1) == expected);
}

TEST_CASE("separate memory: a run stops and goes on across devices") {
    const TempFolder folder;
    Config config = config_of(job_of("mlp")).config;
    config.optimizer.name = "adam";
    const Files expected = train_files(config, 1, 0);
    config.checkpoint.every_steps = 3;
    train_files(config, 2, 2, folder / "device");
    train_files(config, 2, 0, folder / "cpu");
    for (const auto& [from, devices] : std::vector<std::pair<std::string, int>>{{"device", 0}, {"cpu", 2}}) {
        const Files found = train_files(config, 2, devices, "", [&](TrainOptions& options) {
            options.resume = ResumeMode::kPath;
            options.resume_path = folder / (from + "/checkpoints/step-00000003");
        });
        CHECK(found.sha256 == expected.sha256);
    }
}

TEST_CASE("separate memory: what the device chose stands in run.json and in checkpoints, the CPU's have none") {
    const TempFolder folder;
    Config config = config_of(job_of("mlp")).config;
    config.checkpoint.every_steps = 3;
    train_files(config, 2, 2, folder / "device");
    train_files(config, 2, 0, folder / "cpu");
    const auto stored = [&](const std::string& run) {
        return read_checkpoint(folder / (run + "/checkpoints/step-00000003")).state.device;
    };
    CHECK(stored("device") == std::vector<std::string>{kDetail});
    CHECK(stored("cpu").empty());
    CHECK_THAT(text_of(read_file(folder / "device/run.json")), Catch::Contains(kDetail));
    CHECK_THAT(text_of(read_file(folder / "cpu/run.json")), !Catch::Contains(R"("device":)"));
}

TEST_CASE("separate memory: a planted fault is found, with the words that the CPU has for it") {
    Config config = config_of(job_of("mlp")).config;
    config.check.replicas_every = 2;
    const auto planted = [](TrainOptions& options) { options.fault = Fault{1, 3, 7}; };
    std::string on_device = message_of([&] { train_files(config, 3, 3, "", planted); });
    const std::string device_name = "separate ";
    for (std::size_t at = on_device.find(device_name); at != std::string::npos; at = on_device.find(device_name)) {
        on_device.erase(at, device_name.size());
    }
    CHECK(on_device == message_of([&] { train_files(config, 3, 0, "", planted); }));
    CHECK_THAT(on_device, Catch::Contains("rank 1"));
}

TEST_CASE("separate memory: a non-finite step is replayed, and named as on the CPU") {
    Config config = config_of(job_of("lenet")).config;
    config.optimizer.lr = 1e18;
    for (const int world : {1, 3}) {
        const std::string expected = message_of([&] { train_files(config, world, 0); });
        CHECK_THAT(expected, Catch::Contains("non-finite"));
        CHECK(message_of([&] { train_files(config, world, world); }) == expected);
    }
}

TEST_CASE("separate memory: a time line has its stages") {
    const TempFolder folder;
    const Config config = config_of(job_of("lenet")).config;
    train_files(config, 2, 2, "", [&](TrainOptions& options) { options.trace_file = folder / "line.json"; });
    CHECK_THAT(text_of(read_file(folder / "line.json")), Catch::Contains("optimizer"));
}

TEST_CASE("separate memory: predictions and evaluations are the CPU's") {
    set_log(LogLevel::kQuiet, false);
    for (const int64_t classes : {2, 7}) {
        Job job = job_of("lenet");
        job.classes = classes;
        const Config config = config_of(job).config;
        const DataSplits data = open_data(config);
        const auto answers = [&](Communicator& comm, Backend& backend) {
            Network network(model_spec(config, data.train->shape(), data.train->classes(), {}), backend);
            std::vector<float> flat(static_cast<std::size_t>(network.parameters().flat_elements()));
            ThreadPool pool(1);
            network.parameters().initialise(3, flat, pool);
            const auto weights = backend.allocate(flat.size() * sizeof(float));
            backend.upload(backend.main(), flat.data(), weights->floats(), flat.size() * sizeof(float));
            const EvaluationContext context{comm, backend, network, weights->floats(), config};
            std::string text = eval_line(evaluate(context, *data.train));
            predict(context, *data.test, [&](const std::string& rows) { text += rows; });
            return text;
        };
        std::string expected, found;
        const auto alone = make_single_communicator();
        expected = answers(*alone, *make_cpu_backend({Isa::kAuto, 1}));
        run_thread_world(3, [&](Communicator& comm) {
            const DeviceChoice device = separate(comm);
            const std::string text = answers(comm, *device.backend);
            if (comm.rank() == 0) found = text;
        });
        CHECK(found == expected);
    }
}
