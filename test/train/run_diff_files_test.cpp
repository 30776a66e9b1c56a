// What diff finds in the files of two runs: by how much weights differ, and where traces, checkpoints or metrics are
// missing or damaged.
#include "train/diff_runs.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("by how much weights differ is told at the first checkpoint of both after the difference") {
    Runs runs;
    const auto often = [](Config& c) {
        c.checkpoint.every_steps = 2;
        c.checkpoint.keep = 9;
    };
    runs.train("a", changed(often));
    TracedRun flip = flipped(Flip::Where::kWeight, 7, 1, 0);
    flip.change = often;
    runs.train("b", flip);
    const RunDiff diff = diff_runs(runs / "a", runs / "b");
    REQUIRE(diff.weights);
    CHECK(diff.weights->step == 4);
    CHECK(diff.weights->where == "checkpoints/step-00000004");
    REQUIRE(diff.weights->tensors.size() == 12);  // six tensors, and their momentum
    const TensorDiff& tensor = diff.weights->tensors.front();
    CHECK(tensor.name == "fc1.weight");
    CHECK(tensor.differ == 1);
    CHECK(tensor.ulp == std::array<int64_t, kUlpBins.size()>{1, 0, 0, 0, 0, 0});
    REQUIRE(tensor.first);
    CHECK(tensor.first->index == std::vector<int64_t>{0, 7});
    CHECK(tensor.max_abs > 0);
    for (std::size_t i = 1; i < 12; ++i) CHECK(diff.weights->tensors[i].differ == 0);
    CHECK(diff_json(diff).find(R"("stage": "optimizer")") != std::string::npos);
}

TEST_CASE("distances in ulp count the numbers between two floats") {
    const auto next = [](float value) { return std::nextafter(value, std::numeric_limits<float>::infinity()); };
    CHECK(ulp_distance(1.0F, 1.0F) == 0);
    CHECK(ulp_distance(1.0F, next(1.0F)) == 1);
    CHECK(ulp_distance(next(next(-1.0F)), -1.0F) == 2);
    CHECK(ulp_distance(-0.0F, 0.0F) == 1);
    CHECK(ulp_distance(-std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::denorm_min()) == 3);
    CHECK(ulp_distance(1.0F, 2.0F) == 1U << 23);
    CHECK(ulp_distance(-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()) ==
          2 * uint64_t{0x7f800000} + 1);
}

TEST_CASE("without traces, metrics, checkpoints and final weights tell as much as they can") {
    Runs runs;
    const auto untraced = [](std::function<void(Config&)> change) {
        return changed([change = std::move(change)](Config& c) {
            c.check.trace = "off";
            c.log.every = 3;
            if (change) change(c);
        });
    };
    const RunDiff equal = runs.diff_of(untraced({}));
    CHECK(first_line(equal) == "equal");
    CHECK(
        says(equal, "RUN_B has no trace.jsonl: as far as both go equal in what metrics.jsonl, checkpoints and final"));
    CHECK_FALSE(says(equal, "would tell"));
    const RunDiff rate = runs.diff_of(untraced([](Config& c) { c.optimizer.lr = 0.04; }));
    CHECK(first_line(rate) == "differ at step 3: forward loss");
    CHECK(says(rate, "RUN_B has no trace.jsonl: check.trace = \"hash\" would tell"));
    CHECK(says(rate, "lr: 0.05 against 0.04"));
    CHECK(says(rate, "whose line of step 0 is the last equal one"));
    const RunDiff checkpoint = [&] {
        const auto often = [](Config& c) {
            c.checkpoint.every_steps = 2;
            c.checkpoint.keep = 9;
            c.log.every = 9;
        };
        runs.train("a", untraced(often));
        TracedRun flip = flipped(Flip::Where::kWeight, 7, 1, 0);
        flip.change = untraced(often).change;
        runs.train("b", flip);
        return diff_runs(runs / "a", runs / "b");
    }();
    CHECK(first_line(checkpoint) == "differ at step 4: weights fc1.weight");
    CHECK(says(checkpoint, "by checkpoints/step-00000004/model.safetensors"));
}

TEST_CASE("runs of other lengths, models and data") {
    Runs runs;
    const RunDiff longer = runs.diff_of(changed([](Config& c) { c.train.steps = 12; }));
    CHECK(first_line(longer) == "differ at step 10: length");
    CHECK(keys(longer) == "train.steps");
    const RunDiff model = runs.diff_of(changed([](Config& c) { c.model.hidden = {20}; }));
    CHECK(first_line(model) == "differ at step 0: weights fc1.weight");
    CHECK(says(model, "fc1.weight [33, 144] against fc1.weight [20, 144]"));
    CHECK(keys(model) == "model.hidden");
    const RunDiff data = runs.diff_of(changed([](Config& c) { c.data.samples = 212; }));
    CHECK(data.first->stage + " " + data.first->tensor == "data indices");
    CHECK(keys(data) == "data.samples");
    CHECK(says(data, "training data: "));
}

TEST_CASE("a run started from another's checkpoint is compared from there on") {
    Runs runs;
    runs.train("whole", changed([](Config& c) { c.checkpoint.every_steps = 4; }));
    const Job& job = runs.job();
    const auto continue_from = [&](const std::string& name, bool flip) {
        LoadedConfig loaded = config_of(job);
        loaded.config.check.trace = "hash";
        TrainOptions options;
        options.out = runs / name;
        options.resume = ResumeMode::kPath;
        options.resume_path = runs / "whole/checkpoints/step-00000004";
        options.progress.style = ProgressStyle::kNone;
        Flip weight(Flip::Where::kWeight, 6, 7);
        options.on_engine = [&](StepEngine& engine) {
            if (flip) engine.watch(weight);
        };
        const auto comm = make_single_communicator();
        train_on(*comm, loaded, open_data(loaded.config), options);
    };
    continue_from("rest", false);
    CHECK(first_line(diff_runs(runs / "whole", runs / "rest")) == "equal");
    CHECK(first_line(diff_runs(runs / "rest", runs / "whole")) == "equal");
    continue_from("flip", true);
    CHECK(first_line(diff_runs(runs / "whole", runs / "flip")) == "differ at step 6: optimizer fc1.weight");
}

TEST_CASE("what is no run, or a damaged one, is named") {
    Runs runs;
    const auto refused = [&](ErrorKind kind, const std::string& text) {
        const auto error = caught([&] { runs.diff("copy"); });
        INFO((error ? error->message : "nothing thrown"));
        CHECK((error && error->kind == kind && error->says(text)));
        fs::remove_all(runs / "copy");
    };
    const auto copy = [&] { fs::copy(runs / "base", runs / "copy", fs::copy_options::recursive); };
    refused(ErrorKind::kUsage, "copy: no run directory");
    fs::create_directory(runs / "copy");
    refused(ErrorKind::kUsage, "copy: holds no run");
    for (const char* file :
         {"run.json", "metrics.jsonl", "trace.jsonl", "config.resolved.toml", "checkpoints/step-00000009/state.json"}) {
        copy();
        const std::string path = runs / (std::string("copy/") + file);
        std::string text = text_at(path);
        text.insert(30, "\x01\"{=");
        rewrite(path, text);
        refused(ErrorKind::kData, file);
    }
    copy();
    fs::remove(runs / "copy/config.resolved.toml");
    refused(ErrorKind::kData, "config.resolved.toml is missing");
    copy();  // the weights are asked for where they differ
    for (const char* file : {"trace.jsonl", "checkpoints"}) fs::remove_all(runs / (std::string("copy/") + file));
    rewrite(runs / "copy/model.safetensors", "short");
    std::string metrics = text_at(runs / "copy/metrics.jsonl");
    metrics.replace(metrics.find("\"sha256\":\"") + 10, 4, "0000");
    rewrite(runs / "copy/metrics.jsonl", metrics);
    refused(ErrorKind::kData, "model.safetensors");
    copy();  // a run that was killed before its trace had a line has none
    rewrite(runs / "copy/trace.jsonl", "");
    CHECK(says(runs.diff("copy"), "RUN_B has no trace.jsonl"));
    fs::remove_all(runs / "copy");
    // Nothing that both have: a run that was killed before it wrote a line.
    fs::create_directory(runs / "copy");
    fs::copy(runs / "base/config.resolved.toml", runs / "copy/config.resolved.toml");
    refused(ErrorKind::kData, "no step, checkpoint or final weights of both to compare");
}
