// trace.jsonl: one for all numbers of ranks but for what each rank had by itself, cut back on resume, and read again.
#include "train/trace.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "backend/cpu/cpu_backend.hpp"
#include "core/hash.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "train/trace_file.hpp"
#include "train/traced.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string file_text(const std::string& path) {
    return text_of(read_file(path));
}

std::vector<ShardRange> own_shards(const std::string& line) {
    std::vector<ShardRange> shards;
    for (const TraceNode& node : parse_trace_step(line, "line").own) shards.push_back(node.shards);
    return shards;
}

}  // namespace

TEST_CASE("the trace is the same at any number of ranks, threads, buckets and instruction sets, but for own sums") {
    Job job = job_of_traces();
    SECTION("mlp") {}
    SECTION("lenet with dropout, adam and more shards") {
        job.model = "lenet";
        job.dropout = 0.3;
        job.optimizer = "adam";
        job.shards = 16;
    }
    SECTION("layout epoch, an odd number of shards") {
        job.layout = "epoch";
        job.shards = 5;
    }
    const std::string alone = train_traced(job, {.cast = {1, {1}, {"auto"}}}).trace;
    const std::vector<std::string> expected = common_lines(alone);
    REQUIRE(expected.size() == static_cast<std::size_t>(job.steps) + 1);
    for (const Cast& cast : {Cast{1, {3}, {"scalar"}}, Cast{2, {2, 1}, {"auto"}, 1}, Cast{3, {1}, {"scalar", "auto"}},
                             Cast{8, {1}, {"auto"}, 4096, 0}}) {
        INFO(cast.describe());
        const std::string trace = train_traced(job, {.cast = cast}).trace;
        CHECK(common_lines(trace) == expected);
        CHECK((trace == alone) == (cast.world == 1));
    }
    // The twin: another seed is another trace, in every line.
    job.seed = 2;
    const std::vector<std::string> other = common_lines(train_traced(job, {}).trace);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(other[i] != expected[i]);
}

TEST_CASE("own sums are the maximal nodes of each rank, and nobody's where a rank has no samples") {
    Job job = job_of_traces();
    const auto own = [&](int world) { return own_shards(lines_of(train_traced(job, {.cast = {world}}).trace).at(1)); };
    CHECK(own(1) == std::vector<ShardRange>{{0, 8}});
    CHECK(own(2) == std::vector<ShardRange>{{0, 4}, {4, 8}});
    CHECK(own(3) == std::vector<ShardRange>{{0, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 8}});
    job.shards = 2;
    CHECK(own(3) == std::vector<ShardRange>{{0, 1}, {1, 2}});
}

TEST_CASE("the hash of the indices knows nothing of shards, that of the samples nothing of their order of reading") {
    Job job = job_of_traces();
    const auto step = [](const std::string& trace, std::size_t line) {
        return parse_trace_step(lines_of(trace).at(line), "line");
    };
    const std::string eight = train_traced(job, {}).trace;
    job.shards = 4;
    const std::string four = train_traced(job, {.cast = {2}}).trace;
    for (std::size_t line = 1; line <= 9; ++line) {
        CHECK(step(four, line).indices == step(eight, line).indices);
        CHECK(step(four, line).data == step(eight, line).data);
        CHECK(step(four, line).samples == (line == 7 ? 19 : 32));
    }
    CHECK(step(four, 1).gradient != step(eight, 1).gradient);
    // Every batch of an epoch is another one, and the next epoch's first is not this one's.
    CHECK(step(eight, 2).indices != step(eight, 1).indices);
    CHECK(step(eight, 8).indices != step(eight, 1).indices);
}

TEST_CASE("a tensor's hash is that of its pieces' hashes, whoever computes it, and gaps belong to no tensor") {
    ParameterTable table;
    table.add("fc1.weight", {3, 5000}, {});
    table.add("fc1.bias", {3}, {});
    table.add("fc2.weight", {4096}, {});
    std::vector<float> flat(static_cast<std::size_t>(table.flat_elements()));
    for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<float>(i) * 0.37F;
    const auto definition = [&](const Parameter& p) {
        std::vector<uint64_t> pieces;
        for (int64_t begin = 0; begin < p.count; begin += kHashPiece) {
            const auto count = static_cast<std::size_t>(std::min(kHashPiece, p.count - begin));
            pieces.push_back(hash64(std::as_bytes(std::span(flat.data() + p.offset + begin, count))));
        }
        return hash64(std::as_bytes(std::span(pieces)));
    };
    for (const int threads : {1, 2, 5}) {
        const auto backend = make_cpu_backend({Isa::kScalar, threads});
        TensorHasher hasher(table, *backend);
        std::vector<uint64_t> hashes(3, 0);
        hasher.hash(flat.data(), 0, 3, hashes);
        for (int i = 0; i < 3; ++i) CHECK(hashes[static_cast<std::size_t>(i)] == definition(table[i]));
        const uint64_t before = hashes[1];
        flat[static_cast<std::size_t>(table[1].offset + table[1].count)] += 1;  // a gap
        hasher.hash(flat.data(), 1, 2, hashes);
        CHECK(hashes[1] == before);
        flat[static_cast<std::size_t>(table[1].offset)] += 1;
        hasher.hash(flat.data(), 1, 2, hashes);
        CHECK(hashes[1] != before);
    }
}

TEST_CASE("a run that goes on at another number of ranks ends with the trace of the uninterrupted one") {
    const Job job = job_of_traces();
    const TempFolder folder;
    const std::string expected = train_traced(job, {}).trace;
    const TracedRun leg{
        .cast = {3}, .out = folder / "run", .stop = [](int rank, int64_t calls) { return rank == 1 && calls == 4; }};
    REQUIRE(train_traced(job, leg).stopped);
    const std::string path = folder / "run/trace.jsonl";
    const std::string cut = file_text(path);
    REQUIRE(lines_of(cut).size() == 5);
    // What a killed run leaves: lines of steps that no checkpoint has, the last of them half-written.
    std::ofstream(path, std::ios::app) << R"({"step":5,"epoch":9,"left":"over"})"
                                       << "\n"
                                       << R"({"step":6,"ep)";
    train_traced(job, {.cast = {2}, .out = folder / "run", .resume = ResumeMode::kAuto});
    const std::string whole = file_text(path);
    CHECK(common_lines(whole) == common_lines(expected));
    CHECK(whole.starts_with(cut));
    const TraceFile read = TraceFile::read(path);
    CHECK(read.last_step() == 9);
    CHECK(read.step(5).epoch == 0);
    CHECK(read.line(12).empty());
}

TEST_CASE("a run that is traced only from some step on says what it starts from") {
    const Job job = job_of_traces();
    const TempFolder folder;
    const auto untraced = [](Config& config) { config.check.trace = "off"; };
    REQUIRE(train_traced(
                job, {.out = folder / "run", .change = untraced, .stop = [](int, int64_t calls) { return calls == 4; }})
                .stopped);
    REQUIRE_FALSE(std::filesystem::exists(folder / "run/trace.jsonl"));
    train_traced(job, {.out = folder / "run", .resume = ResumeMode::kAuto});
    const TraceFile read = TraceFile::read(folder / "run/trace.jsonl");
    CHECK(read.first_step() == 4);
    CHECK(read.steps() == std::vector<int64_t>{5, 6, 7, 8, 9});
    const std::vector<std::string> whole = lines_of(train_traced(job, {}).trace);
    CHECK(read.start().weights == parse_trace_step(whole.at(4), "line").weights);
    CHECK(read.line(9) == whole.at(9));
}

TEST_CASE("lines are read as they were written, and damaged ones are refused with their place") {
    const TempFolder folder;
    const std::string trace = train_traced(job_of_traces(), {.cast = {3}}).trace;
    const std::vector<std::string> lines = lines_of(trace);
    CHECK(trace_line(parse_trace_start(lines[0], "")) == lines[0]);
    for (std::size_t i = 1; i < lines.size(); ++i) CHECK(trace_line(parse_trace_step(lines[i], "")) == lines[i]);
    TraceStep apart = parse_trace_step(lines[1], "");
    apart.apart = {{1, {"fc1.weight"}, {"fc1.weight", "fc2.bias"}}};
    CHECK(parse_trace_step(trace_line(apart), "").apart == apart.apart);

    const auto refused = [&](const std::string& text, const std::string& says) {
        const std::string path = folder.write("trace.jsonl", text);
        const auto error = caught([&] { TraceFile::read(path).step(1); });
        INFO(says << " in: " << (error ? error->message : "nothing thrown"));
        CHECK((error && error->kind == ErrorKind::kData && error->says(path) && error->says(says)));
    };
    const std::string start = lines[0] + "\n";
    refused("", "no line");
    refused(lines[0], "no line");  // cut off
    refused(lines[1] + "\n", ":1: damaged trace");
    refused(start + "{}\n", ":2: damaged trace: no step");
    refused(start + lines[2] + "\n" + lines[1] + "\n", ":3: damaged trace: step 1 after 2");
    refused(start + lines[1].substr(0, 90) + "\n", ":2: damaged trace");
    std::string hash = lines[1];
    hash[hash.find("\"indices\":\"") + 12] = 'x';
    refused(start + hash + "\n", "no hash");
    TraceStep fewer = parse_trace_step(lines[1], "");
    fewer.gradient.pop_back();
    refused(start + trace_line(fewer) + "\n", "not one hash for each tensor");
}
