// A run in legs: started, asked to stop, and gone on with at another number of ranks, in a folder of its own; and what
// it leaves there, to compare with a run that was never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/point.hpp"

namespace lockstep::test {

/// In memory where the machine has such a folder: what a test leaves for a second need not wait for a disk to sync it.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_;
};

std::string text_of(const std::string& path);

struct Leg {
    int world = 1;
    int64_t threads = 1;
    int64_t stop_after = 0;  // ask for a stop during this step of the leg; 0 = to the end
    int asks = 0;            // the rank that is asked
};

/// One leg in the folder `out`, from the checkpoint `from` or, without one, from where the folder is.
TrainResult run_leg(const Config& config, const DataSplits& data, const std::string& out, const Leg& leg,
                    const std::string& from = "", const RankChange& change = {});
TrainResult run_leg(const Job& job, const std::string& out, const Leg& leg, const std::string& from = "",
                    const std::function<void(Config&)>& change = {});

/// The result of a run as its folder holds it.
struct RunFiles {
    std::string model;
    std::string optimizer;   // of the last checkpoint
    std::string metrics;     // without wall
    std::string best;        // name of the best checkpoint; empty where none is asked for
    std::string best_model;  // and its weights
};
RunFiles files_of(const std::string& out);
/// Names of the parts that two runs do not have in common; "" if they are the same run.
std::string differences(const RunFiles& left, const RunFiles& right);

}  // namespace lockstep::test
