// Traced runs for the tests of trace and diff: with ranks as threads, in memory or in a folder, with something planted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"
#include "train/trace_line.hpp"

namespace lockstep::test {

inline Job job_of_traces() {
    Job job;
    job.samples = 211;  // 7 steps an epoch, the last of 19 samples
    job.batch = 32;
    job.steps = 9;
    return job;
}

struct TracedRun {
    Cast cast = {};
    std::string out = {};                                              // "" = in memory
    std::function<void(Config&)> change = {};                          // of the config, on all ranks
    std::function<std::unique_ptr<StepWatcher>(int rank)> plant = {};  // may give null
    std::function<bool(int rank, int64_t calls)> stop = {};            // asked once a step
    ResumeMode resume = ResumeMode::kNever;
};

/// What rank 0 gives; `trace` holds the trace of a run in memory.
inline TrainResult train_traced(const Job& job, const TracedRun& run) {
    set_log(LogLevel::kQuiet, false);
    LoadedConfig common = config_of(job);
    common.config.check.trace = "hash";
    common.config.log.every = 1;
    if (run.change) run.change(common.config);
    const DataSplits data = open_data(common.config);
    TrainResult first;
    run_thread_world(run.cast.world, [&](Communicator& comm) {
        const auto rank = static_cast<std::size_t>(comm.rank());
        LoadedConfig own = common;
        own.config.device.threads = run.cast.threads[rank % run.cast.threads.size()];
        own.config.device.isa = run.cast.isas[rank % run.cast.isas.size()];
        own.config.reduce.bucket_kib = run.cast.bucket_kib;
        own.config.reduce.small_kib = run.cast.small_kib;
        std::unique_ptr<StepWatcher> planted;
        if (run.plant) planted = run.plant(comm.rank());
        TrainOptions options;
        options.out = run.out;
        options.resume = run.resume;
        options.progress.style = ProgressStyle::kNone;
        options.on_engine = [&](StepEngine& engine) {
            if (planted) engine.watch(*planted);
        };
        options.stop_requested = [&, calls = int64_t{0}]() mutable {
            return run.stop && run.stop(comm.rank(), ++calls);
        };
        TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() == 0) first = std::move(result);
    });
    return first;
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
}

/// The part that all ranks' numbers share.
inline std::vector<std::string> common_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (const std::string& line : lines_of(text)) lines.emplace_back(common_part(line));
    return lines;
}

}  // namespace lockstep::test
