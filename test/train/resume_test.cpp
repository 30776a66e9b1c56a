// A run that was stopped and goes on at another number of ranks, threads and instruction sets is the run that was never
// stopped: the same model file, the same metrics.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.hpp"
#include "train/checkpoint.hpp"
#include "train/legs.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

Job job_for_resume() {
    Job job;
    job.samples = 211;  // 7 steps an epoch, the last of 19
    job.batch = 32;
    job.steps = 18;
    job.optimizer = "adam";
    job.schedule = "cosine";
    job.warmup = 0.5;
    return job;
}

}  // namespace

TEST_CASE("stopped at a random step and resumed at another world, also twice: equal to the uninterrupted run") {
    const unsigned seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
    std::mt19937 random(seed);
    Job job = job_for_resume();
    job.layout = seed % 2 == 0 ? "epoch" : "batch";
    job.optimizer = seed % 3 == 0 ? "nesterov" : "adam";
    if (seed == 4) {
        job.model = "lenet";
        job.dropout = 0.4;
    }
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {1, 2});
    const int64_t first = 1 + static_cast<int64_t>(random() % 9);
    const int64_t second = 1 + static_cast<int64_t>(random() % 6);
    INFO("seed " << seed << ": stops after " << first << " and " << second << " more steps");
    REQUIRE(run_leg(job, folder / "legs", {8, 1, first, 5}).stopped);
    REQUIRE(run_leg(job, folder / "legs", {3, 2, second, 2}).stopped);
    REQUIRE(run_leg(job, folder / "legs", {4, 1, 1, 0}).steps == first + second + 1);
    REQUIRE_FALSE(run_leg(job, folder / "legs", {1, 3}).stopped);
    REQUIRE(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
    REQUIRE(without_wall(text_of(folder / "legs/metrics.jsonl")) ==
            without_wall(text_of(folder / "whole/metrics.jsonl")));
}

TEST_CASE("stopped just before the short last batch of an epoch and resumed: equal to the uninterrupted run") {
    const Job job = job_for_resume();
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {2});
    REQUIRE(run_leg(job, folder / "legs", {2, 1, 6}).steps == 6);  // step 7 has 19 samples
    run_leg(job, folder / "legs", {5});
    REQUIRE(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
    REQUIRE(without_wall(text_of(folder / "legs/metrics.jsonl")) ==
            without_wall(text_of(folder / "whole/metrics.jsonl")));
}

TEST_CASE("twin: a resume that forgets the optimizer's state is found out") {
    Job job = job_for_resume();
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {1});
    REQUIRE(run_leg(job, folder / "legs", {1, 1, 9}).stopped);
    // The same checkpoint with its first moments zeroed, and honestly described.
    Checkpoint spoiled = read_checkpoint(newest_checkpoint(folder / "legs/checkpoints"));
    std::fill(spoiled.optimizer.end() - 4096, spoiled.optimizer.end(), std::byte{0});
    write_checkpoint(folder / "legs/checkpoints", spoiled, 3);
    run_leg(job, folder / "legs", {1});
    REQUIRE(text_of(folder / "legs/model.safetensors") != text_of(folder / "whole/model.safetensors"));
}

TEST_CASE("a finished run can be made longer and then equals the run that was long from the start") {
    Job job = job_for_resume();
    job.schedule = "step";
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {1});
    const auto shorter = [](Config& c) { c.train.steps = 11; };
    REQUIRE(run_leg(job, folder / "legs", {2}, "", shorter).steps == 11);
    REQUIRE(run_leg(job, folder / "legs", {2}, "", shorter).already_done);
    REQUIRE(run_leg(job, folder / "legs", {4}).steps == 18);
    REQUIRE(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
    REQUIRE(without_wall(text_of(folder / "legs/metrics.jsonl")) ==
            without_wall(text_of(folder / "whole/metrics.jsonl")));
}

TEST_CASE("a checkpoint starts a new run directory, whose metrics begin after its step") {
    Job job = job_for_resume();
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {1});
    REQUIRE(run_leg(job, folder / "legs", {1, 1, 10}).stopped);
    run_leg(job, folder / "new", {3}, newest_checkpoint(folder / "legs/checkpoints"));
    REQUIRE(text_of(folder / "new/model.safetensors") == text_of(folder / "whole/model.safetensors"));
    const std::string whole = without_wall(text_of(folder / "whole/metrics.jsonl"));
    const std::string part = without_wall(text_of(folder / "new/metrics.jsonl"));
    REQUIRE(part.starts_with(R"({"event":"step","step":12,)"));
    REQUIRE(whole.ends_with(part));
}

TEST_CASE("what may not differ on resume is refused by name") {
    Job job = job_for_resume();
    TemporaryFolder folder;
    REQUIRE(run_leg(job, folder / "run", {1, 1, 5}).stopped);
    const auto refused = [&](const std::function<void(Config&)>& change, const std::string& word) {
        try {
            run_leg(job, folder / "run", {2}, "", change);
            FAIL("not refused: " << word);
        } catch (const Error& e) {
            REQUIRE(e.kind() == ErrorKind::kUsage);
            REQUIRE_THAT(e.what(), Catch::Contains(word));
        }
    };
    refused([](Config& c) { c.optimizer.lr = 0.01; }, "optimizer.lr");
    refused([](Config& c) { c.batch.shards = 4; }, "batch.shards");
    refused([](Config& c) { c.seed = 2; }, "seed");
    refused([](Config& c) { c.model.hidden = {34, 17}; }, "model.hidden");
    refused([](Config& c) { c.data.samples = 212; }, "data.samples");
    refused([](Config& c) { c.train.steps = 17; }, "only be longer");
    refused([](Config& c) { c.train.steps = 19; }, "cosine");
    // Several at once: a line for each.
    refused(
        [](Config& c) {
            c.optimizer.lr = 0.01;
            c.batch.size = 33;
        },
        "batch.size");
}

TEST_CASE("keys that cannot change a bit may differ on resume, and change none") {
    const Job job = job_for_resume();
    TemporaryFolder folder;
    run_leg(job, folder / "whole", {1});
    REQUIRE(run_leg(job, folder / "legs", {1, 1, 7}).stopped);
    run_leg(job, folder / "legs", {2}, "", [](Config& c) {
        c.log.grad_norm = true;
        c.log.every = 5;
        c.eval.every_epochs = 0;
        c.eval.every_steps = 4;
        c.checkpoint.every_steps = 2;
        c.checkpoint.keep = 1;
        c.reduce.bucket_kib = 1;
        c.reduce.small_kib = 0;
        c.device.isa = "scalar";
    });
    REQUIRE(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
}

TEST_CASE("a damaged checkpoint is refused by file name, and nothing is overwritten") {
    const Job job = job_for_resume();
    TemporaryFolder folder;
    REQUIRE(run_leg(job, folder / "run", {1, 1, 5}).stopped);
    const std::string path = newest_checkpoint(folder / "run/checkpoints");
    const std::string file = GENERATE("model.safetensors", "optimizer.safetensors", "state.json");
    const std::string before = text_of(path + "/" + file);
    const bool truncated = GENERATE(true, false);
    std::string damaged = truncated ? before.substr(0, before.size() / 2) : before;
    if (!truncated) damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    std::ofstream(path + "/" + file, std::ios::binary) << damaged;
    const std::string metrics = text_of(folder / "run/metrics.jsonl");
    try {
        run_leg(job, folder / "run", {2});
        FAIL("not refused");
    } catch (const Error& e) {
        REQUIRE(e.kind() == ErrorKind::kData);
        REQUIRE_THAT(e.what(), Catch::Contains(file));
    }
    REQUIRE(text_of(folder / "run/metrics.jsonl") == metrics);
}

TEST_CASE("checkpoints: the newest `keep` stay, `latest` names the newest, temporary folders are gone") {
    Job job = job_for_resume();
    TemporaryFolder folder;
    run_leg(job, folder / "run", {2}, "", [](Config& c) {
        c.checkpoint.every_steps = 4;
        c.checkpoint.keep = 2;
    });
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "run/checkpoints"))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    REQUIRE(names == std::vector<std::string>{"latest", "step-00000016", "step-00000018"});
    REQUIRE(text_of(folder / "run/checkpoints/latest") == "step-00000018\n");
}
