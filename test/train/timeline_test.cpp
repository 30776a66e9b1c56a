// The time line of a run: JSON that a viewer opens, every stage of every step on every rank, one after the other, and
// the run it shows is the run without it.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"
#include "support/allocation_counter.hpp"
#include "train/agreement.hpp"
#include "train/clock_offset.hpp"
#include "train/point.hpp"
#include "train/timeline.hpp"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace {

struct TraceSpan {
    std::string name;
    int64_t step, begin, end;  // ns
};
/// Of each rank, in the file's order.
using Trace = std::map<int, std::vector<TraceSpan>>;

int64_t nanoseconds(const json& microseconds) {
    return std::llround(microseconds.get<double>() * 1000);
}

Trace read_trace(const std::string& path) {
    const json file = json::parse(text_of(read_file(path)));
    Trace trace;
    for (const json& event : file.at("traceEvents")) {
        const int rank = event.at("pid");
        if (event.at("ph") == "M") {
            if (event.at("name") == "process_name") {
                CHECK(event.at("args").at("name") == fmt::format("rank {} on {}", rank, host_name()));
                trace[rank];
            }
            continue;
        }
        REQUIRE(event.at("ph") == "X");
        REQUIRE(trace.contains(rank));
        const int64_t begin = nanoseconds(event.at("ts"));
        trace[rank].push_back(
            {event.at("name"), event.at("args").at("step"), begin, begin + nanoseconds(event.at("dur"))});
    }
    return trace;
}

/// Spans of one rank lie one after the other, but for the stages, which fill their step without a gap.
void check_nesting(const std::vector<TraceSpan>& spans) {
    int64_t end = 0;
    const TraceSpan* step = nullptr;
    int64_t inside = 0;
    const auto close_step = [&] {
        if (step != nullptr) CHECK(inside == step->end);
        step = nullptr;
    };
    static const std::set<std::string> stages{"input", "forward", "backward", "reduce", "optimizer"};
    for (const TraceSpan& span : spans) {
        REQUIRE(span.begin <= span.end);
        if (stages.contains(span.name)) {
            REQUIRE(step != nullptr);
            REQUIRE(span.begin == inside);
            REQUIRE(span.step == step->step);
            inside = span.end;
            continue;
        }
        close_step();
        REQUIRE(span.begin >= end);
        end = span.end;
        if (span.name != "step") continue;
        step = &span;
        inside = span.begin;
    }
    close_step();
}

std::map<std::string, std::vector<int64_t>> steps_by_name(const std::vector<TraceSpan>& spans) {
    std::map<std::string, std::vector<int64_t>> steps;
    for (const TraceSpan& span : spans) steps[span.name].push_back(span.step);
    return steps;
}

Job tiny_job(int64_t steps) {
    Job job;
    job.samples = 96;
    job.batch = 16;
    job.steps = steps;
    return job;
}

std::vector<int64_t> numbers(int64_t first, int64_t last) {
    std::vector<int64_t> all;
    for (int64_t u = first; u <= last; ++u) all.push_back(u);
    return all;
}

}  // namespace

TEST_CASE("every stage of every step of every rank is there, nests, and the run is the one without a time line") {
    const Outcome expected = run(tiny_job(14), {1});
    for (const int world : {1, 3}) {
        CAPTURE(world);
        const TempFolder folder;
        const std::string file = folder / "trace.json";
        const Outcome traced = run(tiny_job(14), {world}, {[&](LoadedConfig& loaded, TrainOptions& options, int) {
                                       options.trace_file = file;
                                       options.out = folder / "run";
                                       loaded.config.checkpoint.every_steps = 7;
                                       loaded.config.check.replicas_every = 4;
                                   }});
        CHECK(traced.sha256 == expected.sha256);
        const Trace trace = read_trace(file);
        REQUIRE(trace.size() == static_cast<std::size_t>(world));
        for (const auto& [rank, spans] : trace) {
            CAPTURE(rank);
            check_nesting(spans);
            auto steps = steps_by_name(spans);
            for (const char* stage : {"step", "input", "forward", "backward", "reduce", "optimizer"}) {
                CHECK(steps[stage] == numbers(1, 14));
            }
            CHECK(steps["evaluate"] == std::vector<int64_t>{6, 12, 14});
            CHECK(steps["checkpoint"] == std::vector<int64_t>{7, 14});
            CHECK(steps["replica check"] == std::vector<int64_t>{4, 7, 8, 12, 14});
            // 14 steps of ranks in one process: none ends before another rank has begun it.
            for (const auto& [other, its] : trace) CHECK(spans.front().begin < its.back().end);
        }
    }
}

TEST_CASE("what was gathered during a long run stands before what is gathered at its end") {
    const TempFolder folder;
    const std::string file = folder / "trace.json";
    Job job = tiny_job(1100);
    run(job, {2}, {[&](LoadedConfig& loaded, TrainOptions& options, int) {
            options.trace_file = file;
            loaded.config.model.hidden = {3};
            loaded.config.eval.every_epochs = 0;
        }});
    for (const auto& [rank, spans] : read_trace(file)) {
        CAPTURE(rank);
        check_nesting(spans);
        CHECK(steps_by_name(spans)["optimizer"] == numbers(1, 1100));
        CHECK(steps_by_name(spans)["gather trace"] == std::vector<int64_t>{1024});
    }
}

TEST_CASE("a rank without rows has no forward and no backward") {
    const TempFolder folder;
    Job job = tiny_job(5);
    job.shards = 2;
    run(job, {3}, {[&](LoadedConfig&, TrainOptions& options, int) { options.trace_file = folder / "trace.json"; }});
    const Trace trace = read_trace(folder / "trace.json");
    int idle = 0;
    for (const auto& [rank, spans] : trace) {
        check_nesting(spans);
        auto steps = steps_by_name(spans);
        CHECK(steps["reduce"] == numbers(1, 5));
        CHECK(steps["forward"] == steps["backward"]);
        idle += steps["forward"].empty() ? 1 : 0;
    }
    CHECK(idle == 1);
}

TEST_CASE("an error that ends all ranks alike still leaves the time line up to it") {
    const TempFolder folder;
    const auto spoil = [&](LoadedConfig& loaded, TrainOptions& options, int) {
        options.trace_file = folder / "trace.json";
        options.fault = Fault{1, 6, 3};
        loaded.config.check.replicas_every = 3;
    };
    CHECK(caught([&] { run(tiny_job(14), {3}, {spoil}); })->kind == ErrorKind::kMismatch);
    const Trace trace = read_trace(folder / "trace.json");
    REQUIRE(trace.size() == 3);
    for (const auto& [rank, spans] : trace) {
        CHECK(steps_by_name(spans)["optimizer"] == numbers(1, 6));
        CHECK(steps_by_name(spans)["replica check"] == std::vector<int64_t>{3, 6});
    }
    CHECK(folder.names() == std::vector<std::string>{"trace.json"});
}

TEST_CASE("a file that cannot be written is refused before the first step, on all ranks, and nothing is left behind") {
    const TempFolder folder;
    std::atomic<int> steps = 0;
    const auto refused = caught([&] {
        run(tiny_job(14), {2}, {[&](LoadedConfig&, TrainOptions& options, int) {
                options.trace_file = folder / "nowhere/trace.json";
                options.out = folder / "run";
                options.stop_requested = [&] { return ++steps < 0; };
            }});
    });
    REQUIRE(refused);
    CHECK(refused->kind == ErrorKind::kRuntime);
    CHECK(refused->says("nowhere/trace.json"));
    CHECK(steps == 0);
    CHECK(TempFolder::names_in(folder / "run").empty());
}

TEST_CASE("between its lines the training loop allocates nothing with a time line, either") {
    const TempFolder folder;
    std::vector<int64_t> allocated(60);
    std::size_t step = 0;
    run(tiny_job(60), {1}, {[&](LoadedConfig& loaded, TrainOptions& options, int) {
            options.trace_file = folder / "trace.json";
            loaded.config.log.every = 50;
            loaded.config.eval.every_epochs = 0;
            options.stop_requested = [&] {
                allocated.at(step++) = allocations_of_process;
                return false;
            };
        }});
    REQUIRE(step == 60);
    CHECK(allocated[45] == allocated[12]);  // two epochs have shown every size
}

TEST_CASE("clocks of other hosts are laid on rank 0's, within the half of the quickest answer's way") {
    constexpr int64_t kSkew = 1'000'000'000'000;  // of each rank against the one before
    std::array<ClockOffset, 4> skewed, same;      // of each rank
    run_thread_world(4, [&](Communicator& comm) {
        const auto rank = static_cast<std::size_t>(comm.rank());
        const auto clock = [&] { return monotonic_ns() + comm.rank() * kSkew; };
        skewed[rank] = clock_offset(comm, fmt::format("host {}", rank), clock);
        same[rank] = clock_offset(comm, monotonic_clock_name(), clock);
    });
    for (std::size_t rank = 0; rank < skewed.size(); ++rank) {
        CAPTURE(rank, skewed[rank].ns, skewed[rank].uncertainty_ns);
        CHECK(std::abs(skewed[rank].ns + static_cast<int64_t>(rank) * kSkew) <= skewed[rank].uncertainty_ns);
        CHECK((skewed[rank].uncertainty_ns > 0) == (rank > 0));
        CHECK(skewed[rank].uncertainty_ns < kSkew / 2);
        // Who reads the same clock is not asked.
        CHECK(same[rank].ns == 0);
    }
}
