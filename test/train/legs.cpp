#include "train/legs.hpp"

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/log.hpp"
#include "train/checkpoint.hpp"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

/// Room for the largest runs of these tests, or a disk.
fs::path folder_in_memory() {
    constexpr std::uintmax_t kEnough = std::uintmax_t{2} << 30;
    const fs::path memory = "/dev/shm";
    std::error_code error;
    const fs::space_info space = fs::space(memory, error);
    return !error && space.available > kEnough ? memory : fs::temp_directory_path();
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (folder_in_memory() / "lockstep-resume-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder for a test: " + pattern);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

TrainResult run_leg(const Config& config, const DataSplits& data, const std::string& out, const Leg& leg,
                    const std::string& from, const RankChange& change) {
    TrainOptions options = from.empty() ? TrainOptions() : resumed_from(from);
    if (from.empty()) options.resume = ResumeMode::kAuto;
    options.out = out;
    return train_world(config, data, leg.world, options, [&](LoadedConfig& own, TrainOptions& of_rank, int rank) {
        own.config.device.threads = leg.threads;
        of_rank.stop_requested = [&leg, rank, calls = int64_t{0}]() mutable {
            return leg.stop_after > 0 && rank == leg.asks && ++calls >= leg.stop_after;
        };
        if (change) change(own, of_rank, rank);
    });
}

TrainResult run_leg(const Job& job, const std::string& out, const Leg& leg, const std::string& from,
                    const std::function<void(Config&)>& change) {
    set_log(LogLevel::kQuiet, false);
    Config config = config_of(job).config;
    config.log.every = 3;
    config.eval.every_epochs = 1;
    if (change) change(config);
    const DataSplits data = open_data(config);
    return run_leg(config, data, out, leg, from);
}

RunFiles files_of(const std::string& out) {
    const std::string checkpoints = out + "/checkpoints";
    RunFiles files;
    files.model = text_of(out + "/model.safetensors");
    files.optimizer = text_of(newest_checkpoint(checkpoints) + "/optimizer.safetensors");
    files.metrics = without_wall(text_of(out + "/metrics.jsonl"));
    files.best = text_of(checkpoints + "/best");
    if (files.best.empty()) return files;
    files.best.pop_back();  // the end of the line
    files.best_model = text_of(checkpoints + "/" + files.best + "/model.safetensors");
    return files;
}

std::string differences(const RunFiles& left, const RunFiles& right) {
    std::string names;
    const auto compare = [&](const char* name, const std::string& a, const std::string& b) {
        if (a == b) return;
        if (!names.empty()) names += ' ';
        names += name;
    };
    compare("model", left.model, right.model);
    compare("optimizer", left.optimizer, right.optimizer);
    compare("metrics", left.metrics, right.metrics);
    compare("best", left.best, right.best);
    compare("best_model", left.best_model, right.best_model);
    return names;
}

}  // namespace lockstep::test
