// diff: every kind of difference is found at its step, stage and tensor; equal runs are equal.
#include "train/diff_runs.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::test;

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
        Network network(model_spec(config_of(job_of_traces()).config, {12, 12, 1}, 10, {}),
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
