// diff: every kind of difference is found at its step, stage and tensor; equal runs are equal; what is damaged is
// named.
#include "train/run_diff.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <limits>

#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "train/traced.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

/// Flips one bit of one number at one stage of one step: of weights the lowest, elsewhere one that a sum does not lose.
class Flip final : public StepWatcher {
  public:
    enum class Where { kPixel, kOwnLoss, kOwnSum, kTotal, kWeight };
    Flip(Where where, int64_t step, int64_t element) : where_(where), step_(step), element_(element) {}

    void batch_read(const Batch& batch) override {
        now_ = batch.at.update == step_;
        if (now_ && where_ == Where::kPixel && batch.rows > 0) flip(const_cast<float*>(batch.pixels), element_);
    }
    void partials_final(int64_t first, int64_t end, std::span<float* const> partial) override {
        if (!now_ || partial.empty()) return;
        if (where_ == Where::kOwnLoss && first == 0) flip(partial[0], kLeadLoss);
        if (where_ == Where::kOwnSum && first <= element_ && element_ < end) flip(partial[0], kLead + element_);
    }
    void reduced(const Batch&, const float* total) override {
        if (now_ && where_ == Where::kTotal) flip(const_cast<float*>(total), kLead + element_);
    }
    void updated(const StepOutcome&, float* weights) override {
        if (now_ && where_ == Where::kWeight) flip(weights, element_);
    }

  private:
    // At the first element from there on that is not 0: a gradient is, where a unit is dead.
    void flip(float* values, int64_t at) const {
        while (values[at] == 0) ++at;
        const uint32_t bit = where_ == Where::kWeight ? 1U : 1U << 12;
        values[at] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[at]) ^ bit);
    }
    Where where_;
    int64_t step_, element_;
    bool now_ = false;
};

std::string text_at(const std::string& path) {
    return text_of(read_file(path));
}
void rewrite(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}
std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}

/// A folder with one run that all others are compared with.
class Runs {
  public:
    explicit Runs(Job job = job_of_traces()) : job_(std::move(job)) { train("base", {}); }
    std::string operator/(const std::string& name) const { return folder_ / name; }
    /// A run that ends because its ranks differ has left its trace.
    void train(const std::string& name, TracedRun run) {
        run.out = folder_ / name;
        try {
            train_traced(job_, run);
        } catch (const Error& e) {
            if (e.kind() != ErrorKind::kMismatch) throw;
        }
    }
    RunDiff diff(const std::string& name) const { return diff_runs(folder_ / "base", folder_ / name); }
    RunDiff diff_of(TracedRun run) {
        const std::string name = "run" + std::to_string(++number_);
        train(name, std::move(run));
        return diff(name);
    }
    /// Run `name` as if it had been traced from after `step` on, and, `begun` there, had no earlier lines nor a
    /// checkpoint in common with any.
    void begin_late(const std::string& name, const std::string& copy, int64_t step, bool begun) const {
        fs::copy(folder_ / name, folder_ / copy, fs::copy_options::recursive);
        std::vector<std::string> lines = lines_of(text_at(folder_ / (name + "/trace.jsonl")));
        TraceStart start = parse_trace_start(lines.front(), "");
        start.step = step;
        start.weights = parse_trace_step(lines[static_cast<std::size_t>(step)], "").weights;
        lines.erase(lines.begin(), lines.begin() + step);
        lines.front() = trace_line(start);
        rewrite(folder_ / (copy + "/trace.jsonl"), joined(lines));
        if (!begun) return;
        fs::remove_all(folder_ / (copy + "/checkpoints"));
        lines = lines_of(text_at(folder_ / (name + "/metrics.jsonl")));
        std::erase_if(lines, [](const std::string& line) { return line.find("\"end\"") == std::string::npos; });
        rewrite(folder_ / (copy + "/metrics.jsonl"), joined(lines));
    }
    const Job& job() const { return job_; }

  private:
    TempFolder folder_;
    Job job_;
    int number_ = 0;
};

std::string first_line(const RunDiff& diff) {
    const std::string text = diff_text(diff);
    return text.substr(0, text.find('\n'));
}

std::string keys(const RunDiff& diff) {
    std::string names;
    for (const KeyDifference& key : diff.keys) names += (names.empty() ? "" : " ") + key.key;
    return names;
}

bool says(const RunDiff& diff, const std::string& text) {
    return diff_text(diff).find(text) != std::string::npos;
}

TracedRun changed(std::function<void(Config&)> change, int world = 1) {
    return {.cast = {world}, .change = std::move(change)};
}

/// On rank `rank`, or on all for -1.
TracedRun flipped(Flip::Where where, int64_t element, int world, int rank) {
    return {.cast = {world}, .plant = [=](int here) -> std::unique_ptr<StepWatcher> {
                if (rank >= 0 && here != rank) return nullptr;
                return std::make_unique<Flip>(where, 4, element);
            }};
}

}  // namespace

TEST_CASE("runs of any number of ranks are equal, and so is one that was stopped and went on") {
    Runs runs;
    for (const int world : {1, 2, 3}) {
        const RunDiff diff = runs.diff_of({.cast = {world}});
        CHECK(first_line(diff) == "equal");
        CHECK(says(diff, "ranks: 1 against") == (world > 1));
        CHECK_FALSE(diff.weights);
    }
    runs.train("legs", {.cast = {3}, .stop = [](int rank, int64_t calls) { return rank == 2 && calls == 5; }});
    const RunDiff unfinished = runs.diff("legs");
    CHECK(first_line(unfinished) == "equal");
    CHECK(says(unfinished, "ends after step 9"));
    CHECK(says(unfinished, "is not done, its last known is step 5"));
    runs.train("legs", {.cast = {2}, .resume = ResumeMode::kAuto});
    CHECK(first_line(runs.diff("legs")) == "equal");
}

TEST_CASE("a key that differs is found at the stage at which it acts, and named") {
    Runs runs;
    const auto expect = [&](const TracedRun& run, const std::string& line, const std::string& key) {
        const RunDiff diff = runs.diff_of(run);
        INFO(diff_text(diff));
        CHECK(first_line(diff) == line);
        CHECK(keys(diff) == key);
        CHECK(says(diff, key + ": "));
        REQUIRE(diff.weights);  // both end with a checkpoint of step 9
        CHECK(diff.weights->step == 9);
    };
    expect(changed([](Config& c) { c.seed = 2; }), "differ at step 0: weights fc1.weight", "seed");
    expect(changed([](Config& c) { c.optimizer.lr = 0.04; }, 2), "differ at step 1: optimizer fc1.weight",
           "optimizer.lr");
    expect(changed([](Config& c) { c.data.shuffle = "block"; }), "differ at step 1: data indices", "data.shuffle");
    expect(changed([](Config& c) { c.data.mean = {0.25}; }), "differ at step 1: data samples", "data.mean");
    expect(changed([](Config& c) { c.model.dropout = 0.25; }), "differ at step 1: forward loss", "model.dropout");
    expect(changed([](Config& c) { c.batch.shards = 4; }), "differ at step 1: gradient fc3.bias", "batch.shards");
    expect(changed([](Config& c) { c.reduce.op = "sum"; }), "differ at step 1: optimizer fc1.weight", "reduce.op");
    // Seven steps of 32, 32, … 19 samples against six of 32.
    expect(changed([](Config& c) { c.batch.last = "drop"; }, 3), "differ at step 7: data indices", "batch.last");
    expect(changed([](Config& c) {
               c.schedule.name = "step";
               c.schedule.every_epochs = 1;
           }),
           "differ at step 8: optimizer fc1.weight", "schedule.name");
}

TEST_CASE("a key that changes no bit is told and makes no difference") {
    Runs runs;
    const RunDiff diff = runs.diff_of({.cast = {2, {1}, {"scalar"}, 1}});
    CHECK(first_line(diff) == "equal");
    CHECK(keys(diff) == "reduce.bucket_kib device.isa");
    CHECK(says(diff, "reduce.bucket_kib: 4096 against 1 (changes no bit)"));
}

TEST_CASE("native sums part from the canonical ones in the reduction") {
    Runs runs;
    runs.train("three", {.cast = {3}});
    runs.train("native", changed([](Config& c) { c.reduce.algorithm = "native"; }, 3));
    const RunDiff same_world = diff_runs(runs / "three", runs / "native");
    CHECK(first_line(same_world).starts_with("differ at step 1: reduction "));
    CHECK(keys(same_world) == "reduce.algorithm");
    CHECK(says(same_world, "every rank's own sums are equal"));
    // Against one rank no part of the sum was recorded by both.
    const RunDiff other_world = runs.diff("native");
    CHECK(first_line(other_world).starts_with("differ at step 1: gradient "));
    CHECK(says(other_world, "it may be their gradient or the reduction"));
}

TEST_CASE("a flipped bit is found at its stage, whichever rank it hits") {
    Runs runs;
    const int world = GENERATE(1, 2, 3);
    const int rank = world - 1;
    runs.train("world", {.cast = {world}});
    const auto expect = [&](Flip::Where where, int64_t element, int who, const std::string& line) {
        const RunDiff diff = [&] {
            runs.train("flip", flipped(where, element, world, who));
            RunDiff found = diff_runs(runs / "world", runs / "flip");
            fs::remove_all(runs / "flip");
            return found;
        }();
        INFO("world " << world << "\n" << diff_text(diff));
        CHECK(first_line(diff) == line);
        CHECK(diff.keys.empty());
    };
    const auto parameters = [] {
        Network network(model_spec(config_of(job_of_traces()).config, {12, 12, 1}, 10),
                        *make_cpu_backend({Isa::kScalar, 1}));
        return network.parameters();
    }();
    const int64_t bias2 = parameters[3].offset + 5;
    REQUIRE(parameters[3].name == "fc2.bias");
    expect(Flip::Where::kPixel, 70, rank, "differ at step 4: data samples");
    expect(Flip::Where::kOwnLoss, 0, rank, "differ at step 4: forward loss");
    expect(Flip::Where::kOwnSum, 7, rank, "differ at step 4: gradient fc1.weight");
    expect(Flip::Where::kOwnSum, bias2, rank, "differ at step 4: gradient fc2.bias");
    // A rank alone has nothing to reduce: its sum is the total.
    const std::string total = world == 1 ? "differ at step 4: gradient " : "differ at step 4: reduction ";
    expect(Flip::Where::kTotal, bias2, -1, total + "fc2.bias");
    expect(Flip::Where::kTotal, 7, rank, total + "fc1.weight");
    expect(Flip::Where::kWeight, bias2, -1, "differ at step 4: optimizer fc2.bias");
    expect(Flip::Where::kWeight, 7, rank, "differ at step 4: optimizer fc1.weight");
}

TEST_CASE("a rank that alone holds other weights is named") {
    Runs runs;
    const RunDiff diff = runs.diff_of(flipped(Flip::Where::kWeight, 7, 3, 2));
    CHECK(says(diff, "in RUN_B rank 2 has another weight than rank 0: fc1.weight"));
    CHECK(says(diff, "is not done"));
}

TEST_CASE("a difference that the weights do not show is found before the one that they show") {
    // The lost bit of a total comes back by the momentum of later steps, if at all: the trace tells of it at once.
    Runs runs;
    fs::copy(runs / "base", runs / "spoiled", fs::copy_options::recursive);
    std::vector<std::string> lines = lines_of(text_at(runs / "base/trace.jsonl"));
    TraceStep early = parse_trace_step(lines[3], "");
    early.gradient[2] ^= 1;
    TraceStep late = parse_trace_step(lines[6], "");
    late.weights[0] ^= 1;
    lines[3] = trace_line(early);
    const auto write = [&] {
        std::string text;
        for (const std::string& line : lines) text += line + "\n";
        rewrite(runs / "spoiled/trace.jsonl", text);
    };
    write();
    const RunDiff hidden = runs.diff("spoiled");
    CHECK(first_line(hidden) == "differ at step 3: reduction fc2.weight");
    CHECK(says(hidden, "the weights after this step are equal all the same"));
    lines[6] = trace_line(late);
    write();
    CHECK(first_line(runs.diff("spoiled")) == "differ at step 3: reduction fc2.weight");
    lines[3] = lines_of(text_at(runs / "base/trace.jsonl"))[3];
    write();
    CHECK(first_line(runs.diff("spoiled")) == "differ at step 6: optimizer fc1.weight");
}

TEST_CASE("runs of which the traces and files have no step in common are not called equal") {
    Runs runs;
    runs.begin_late("base", "late", 5, true);
    runs.train("early", {.stop = [](int, int64_t calls) { return calls == 3; }});
    runs.train("other",
               {.change = [](Config& c) { c.seed = 2; }, .stop = [](int, int64_t calls) { return calls == 3; }});
    for (const char* name : {"early", "other"}) {
        try {
            const RunDiff diff = diff_runs(runs / "late", runs / name);
            FAIL("found: " << diff_text(diff));
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::kData);
            CHECK(std::string(e.what()).ends_with(
                "to compare; the traces tell of steps 5 to 9 of RUN_A, 0 to 3 of RUN_B"));
        }
    }
    // The weights that one starts from and the other ends with are something in common.
    runs.begin_late("base", "end", 9, true);
    CHECK(first_line(runs.diff("end")) == "equal");
    CHECK(says(runs.diff("end"), "by trace.jsonl: steps 9 to 9"));
}

TEST_CASE("what metrics show before the traces begin comes first") {
    Runs runs;
    runs.train("rate", changed([](Config& c) { c.optimizer.lr = 0.04; }));
    runs.begin_late("rate", "late", 5, false);
    const RunDiff diff = runs.diff("late");
    CHECK(first_line(diff) == "differ at step 1: optimizer lr");
    CHECK(says(diff, "by metrics.jsonl"));
    // Twin: without lines of metrics the trace's own beginning is the first that is known.
    rewrite(runs / "late/metrics.jsonl", "");
    CHECK(first_line(runs.diff("late")) == "differ at step 5: weights fc1.weight");
}

TEST_CASE("other test data does not hide a later step at which the traces part") {
    Runs runs;
    fs::copy(runs / "base", runs / "tested", fs::copy_options::recursive);
    std::string metrics = text_at(runs / "base/metrics.jsonl");
    const std::size_t evaluation = metrics.find("\"eval\"");
    REQUIRE(evaluation != std::string::npos);
    metrics.replace(metrics.find("\"loss\":", evaluation) + 7, 1, "1");
    rewrite(runs / "tested/metrics.jsonl", metrics);
    CHECK(first_line(runs.diff("tested")).ends_with("evaluation loss"));
    std::vector<std::string> lines = lines_of(text_at(runs / "base/trace.jsonl"));
    TraceStep step = parse_trace_step(lines.back(), "");
    step.weights[0] ^= 1;
    lines.back() = trace_line(step);
    rewrite(runs / "tested/trace.jsonl", joined(lines));
    CHECK(first_line(runs.diff("tested")) == "differ at step 9: optimizer fc1.weight");
}

TEST_CASE("ranks apart in the gradient alone are no other weights to start from") {
    Runs runs;
    runs.begin_late("base", "late", 5, false);
    fs::copy(runs / "base", runs / "apart", fs::copy_options::recursive);
    std::vector<std::string> lines = lines_of(text_at(runs / "base/trace.jsonl"));
    TraceStep step = parse_trace_step(lines[5], "");
    step.apart = {{1, {"fc1.weight"}, {}}};
    lines[5] = trace_line(step);
    rewrite(runs / "apart/trace.jsonl", joined(lines));
    CHECK(first_line(diff_runs(runs / "apart", runs / "late")) == "equal");
    step.apart = {{1, {}, {"fc1.weight"}}};
    lines[5] = trace_line(step);
    rewrite(runs / "apart/trace.jsonl", joined(lines));
    CHECK(first_line(diff_runs(runs / "apart", runs / "late")) == "differ at step 5: weights fc1.weight");
}

TEST_CASE("a loss that alone differs is the forward pass's, also where another order of additions explains it") {
    Runs runs;
    const TraceFile base = TraceFile::read(runs / "base/trace.jsonl");
    std::vector<std::string> lines = lines_of(text_at(runs / "base/trace.jsonl"));
    TraceStep step = parse_trace_step(lines[3], "");
    step.own.clear();
    step.loss = std::nextafter(step.loss, 0.0F);
    lines[3] = trace_line(step);
    rewrite(runs / "loss", joined(lines));
    const auto found = diff_traces(base, TraceFile::read(runs / "loss"), true);
    REQUIRE(found);
    CHECK(found->stage + " " + found->tensor == "forward loss");
    step.loss = base.step(3).loss;
    step.epoch += 1;
    lines[3] = trace_line(step);
    rewrite(runs / "loss", joined(lines));
    const auto epoch = diff_traces(base, TraceFile::read(runs / "loss"), true);
    REQUIRE(epoch);
    CHECK(epoch->stage + " " + epoch->tensor == "data epoch");
}

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
    CHECK(says(equal, "RUN_B has no trace.jsonl: check.trace = \"hash\" would tell"));
    const RunDiff rate = runs.diff_of(untraced([](Config& c) { c.optimizer.lr = 0.04; }));
    CHECK(first_line(rate) == "differ at step 3: forward loss");
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
