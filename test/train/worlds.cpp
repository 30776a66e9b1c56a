#include "train/worlds.hpp"

#include <regex>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"

namespace lockstep::test {

std::string without_wall(const std::string& metrics) {
    static const std::regex wall(R"(,"wall":\{[^}]*\})");
    return std::regex_replace(metrics, wall, "");
}

TrainResult train_world(const Config& config, const DataSplits& data, int world, const TrainOptions& options,
                        const RankChange& change) {
    set_log(LogLevel::kQuiet, false);
    TrainResult first;
    run_thread_world(world, [&](Communicator& comm) {
        LoadedConfig own;
        own.config = config;
        TrainOptions of_rank = options;
        of_rank.progress.style = ProgressStyle::kNone;
        if (change) change(own, of_rank, comm.rank());
        TrainResult result = train_on(comm, std::move(own), data, of_rank);
        if (comm.rank() == 0) first = std::move(result);  // no other thread writes it
    });
    return first;
}

Outcome outcome_on(const Config& config, const DataSplits& data, int world, const TrainOptions& options,
                   const RankChange& change) {
    const TrainResult result = train_world(config, data, world, options, change);
    return {result.sha256, without_wall(result.metrics)};
}

TrainOptions resumed_from(const std::string& path) {
    TrainOptions options;
    options.resume = ResumeMode::kPath;
    options.resume_path = path;
    return options;
}

}  // namespace lockstep::test
