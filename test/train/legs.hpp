// A run in legs: started, asked to stop, and gone on with at another number of ranks, in a folder of its own.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "comm/thread_communicator.hpp"
#include "core/log.hpp"
#include "train/point.hpp"

namespace lockstep::test {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-resume-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_;
};

inline std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

struct Leg {
    int world = 1;
    int64_t threads = 1;
    int64_t stop_after = 0;  // ask for a stop during this step; 0 = to the end
    int asks = 0;            // the rank that is asked
};

inline TrainResult run_leg(const Job& job, const std::string& out, const Leg& leg, const std::string& from = "",
                           const std::function<void(Config&)>& change = {}) {
    set_log(LogLevel::kQuiet, false);
    LoadedConfig loaded = config_of(job);
    loaded.config.log.every = 3;
    loaded.config.eval.every_epochs = 1;
    if (change) change(loaded.config);
    const DataSplits data = open_data(loaded.config);
    TrainResult first;
    run_thread_world(leg.world, [&](Communicator& comm) {
        LoadedConfig own = loaded;
        own.config.device.threads = leg.threads;
        TrainOptions options;
        options.out = out;
        options.resume = from.empty() ? ResumeMode::kAuto : ResumeMode::kPath;
        options.resume_path = from;
        options.progress.style = ProgressStyle::kNone;
        int64_t calls = 0;
        options.stop_requested = [&, calls]() mutable {
            return leg.stop_after > 0 && comm.rank() == leg.asks && ++calls >= leg.stop_after;
        };
        const TrainResult result = train_on(comm, own, data, options);
        if (comm.rank() == 0) first = result;
    });
    return first;
}

}  // namespace lockstep::test
