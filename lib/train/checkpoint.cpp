#include "train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/key_table.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "io/files.hpp"
#include "io/json_depth.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;  // of state.json
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";

std::string sha256_of(std::span<const std::byte> bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.hex();
}

json file_entry(std::span<const std::byte> bytes) {
    return {{"bytes", bytes.size()}, {"sha256", sha256_of(bytes)}};
}

/// The witness of state.json itself: of all that it says but this.
std::string check_of(json state) {
    state.erase("check");
    const std::string text = state.dump();
    return sha256_of(std::as_bytes(std::span(text)));
}

std::string state_text(const Checkpoint& checkpoint) {
    const CheckpointState& s = checkpoint.state;
    json lines = json::array();
    for (const MetricsLine& line : s.metrics_lines) lines.push_back({{"text", line.text}, {"due", line.due}});
    json state = {
        {"format", kFormat},
        {"version", s.version},
        {"arithmetic", s.arithmetic},
        {"data", {{"train", s.train_data}, {"test", s.test_data}}},
        {"step", s.step},
        {"total_steps", s.total_steps},
        {"config", json::parse(config_to_json(s.config))},
        {"metrics", {{"bytes", s.metrics_bytes}, {"lines", lines}}},
        {"files", {{kModelFile, file_entry(checkpoint.model)}, {kOptimizerFile, file_entry(checkpoint.optimizer)}}},
    };
    if (s.loss_scale) {
        state["loss_scale"] = {{"scale", s.loss_scale->scale},
                               {"good_steps", s.loss_scale->good_steps},
                               {"skipped", s.loss_scale->skipped}};
    }
    if (!s.device.empty()) state["device"] = s.device;
    if (s.history) state["history"] = history_json(*s.history);
    if (!s.weights.empty()) state["weights"] = s.weights;
    state["check"] = check_of(state);
    return state.dump(2) + "\n";
}

std::vector<std::byte> read_checked(const std::string& path, const json& entry) {
    std::vector<std::byte> bytes = read_file(path);
    const auto expected = entry.at("bytes").get<std::size_t>();
    if (bytes.size() != expected) {
        fail(ErrorKind::kData, "{}: damaged checkpoint: {} bytes, {} were written; resume from an older one", path,
             bytes.size(), expected);
    }
    if (sha256_of(bytes) != entry.at("sha256").get<std::string>()) {
        fail(ErrorKind::kData, "{}: damaged checkpoint: its sha256 is not the one in {}; resume from an older one",
             path, kStateFile);
    }
    return bytes;
}

int64_t best_step_of(const std::optional<HistoryState>& history) {
    return history ? history->best.best_step : 0;
}

void remove_old(const std::string& folder, int64_t keep, int64_t best_step) {
    const std::vector<int64_t> steps = checkpoint_steps(folder);
    for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < steps.size(); ++i) {
        if (steps[i] == best_step) continue;
        std::error_code ignored;  // what cannot be removed is only a copy too many
        // Renamed first, so that a half-removed one never looks complete.
        const fs::path old = fs::path(folder) / checkpoint_name(steps[i]);
        const fs::path doomed = fs::path(folder) / (".remove-" + checkpoint_name(steps[i]));
        fs::rename(old, doomed, ignored);
        fs::remove_all(doomed, ignored);
    }
}

}  // namespace

std::string checkpoint_name(int64_t step) {
    return fmt::format("step-{:08}", step);
}

std::vector<int64_t> checkpoint_steps(const std::string& folder) {
    std::vector<int64_t> steps;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        const std::string digits = name.substr(std::min<std::size_t>(name.size(), 5));
        if (!name.starts_with("step-") || digits.empty() || digits.size() > 18 ||
            !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
            continue;
        }
        if (!fs::exists(entry.path() / kStateFile, error)) continue;
        steps.push_back(std::stoll(digits));
    }
    std::sort(steps.begin(), steps.end());
    return steps;
}

std::string write_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int64_t keep) {
    const std::string name = checkpoint_name(checkpoint.state.step);
    const fs::path target = fs::path(folder) / name;
    const fs::path temporary = fs::path(folder) / (".writing-" + name);
    std::error_code error;
    fs::create_directory(folder, error);  // not what it lies in: a run directory that was removed is no place to go on
    if (error) fail(ErrorKind::kRuntime, "{}: cannot create the folder: {}", folder, error.message());
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    fs::create_directory(temporary, error);
    if (error) fail(ErrorKind::kRuntime, "{}: cannot create the folder: {}", temporary.string(), error.message());
    try {
        write_file_synced((temporary / kModelFile).string(), checkpoint.model);
        write_file_synced((temporary / kOptimizerFile).string(), checkpoint.optimizer);
        const std::string text = state_text(checkpoint);
        write_file_synced((temporary / kStateFile).string(), std::as_bytes(std::span(text)));
        sync_folder(temporary.string());
        fs::remove_all(target, ignored);  // the same step again, after a resume from an older one
        fs::rename(temporary, target);
        sync_folder(folder);
    } catch (const fs::filesystem_error& e) {
        fs::remove_all(temporary, ignored);
        fail(ErrorKind::kRuntime, "{}: cannot put the checkpoint in place: {}", target.string(), e.code().message());
    } catch (...) {
        fs::remove_all(temporary, ignored);
        throw;
    }
    write_file_atomic((fs::path(folder) / "latest").string(), name + "\n");
    name_best(folder, checkpoint.state.history);
    remove_old(folder, keep, best_step_of(checkpoint.state.history));
    return target.string();
}

void name_best(const std::string& folder, const std::optional<HistoryState>& history) {
    const std::string name = checkpoint_name(best_step_of(history));
    std::error_code ignored;
    if (best_step_of(history) == 0 || !fs::exists(fs::path(folder) / name / kStateFile, ignored)) return;
    write_file_atomic((fs::path(folder) / "best").string(), name + "\n");
}

std::string read_checkpoint_state_text(const std::string& path) {
    const fs::path file = fs::path(path) / kStateFile;
    std::error_code ignored;
    if (!fs::is_directory(path, ignored) || !fs::exists(file, ignored)) {
        fail(ErrorKind::kUsage, "{}: no checkpoint: a checkpoint is a folder with {}", path, kStateFile);
    }
    const std::vector<std::byte> bytes = read_file(file.string());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Checkpoint read_checkpoint(const std::string& path) {
    Checkpoint checkpoint;
    checkpoint.path = path;
    const std::string text = read_checkpoint_state_text(path);
    const std::string where = (fs::path(path) / kStateFile).string();
    check_json_depth(text, where);
    try {
        const json state = json::parse(text);
        if (state.at("format").get<int>() != kFormat) {
            fail(ErrorKind::kUsage, "{}: format {} of a checkpoint, this version reads {}", where,
                 state.at("format").dump(), kFormat);
        }
        if (state.at("check").get<std::string>() != check_of(state)) {
            fail(ErrorKind::kData,
                 "{}: damaged checkpoint: its contents are not what was written; resume from an older one", where);
        }
        CheckpointState& s = checkpoint.state;
        s.version = state.at("version");
        s.arithmetic = state.at("arithmetic");
        s.train_data = state.at("data").at("train");
        s.test_data = state.at("data").at("test");
        s.step = state.at("step");
        s.total_steps = state.at("total_steps");
        s.config = config_from_json(state.at("config").dump());
        s.metrics_bytes = state.at("metrics").at("bytes");
        for (const json& line : state.at("metrics").at("lines"))
            s.metrics_lines.push_back({line.at("text"), line.at("due")});
        if (state.contains("loss_scale")) {
            const json& scale = state.at("loss_scale");
            s.loss_scale = {scale.at("scale"), scale.at("good_steps"), scale.at("skipped")};
        }
        if (state.contains("history")) s.history = history_of(state.at("history"));
        if (state.contains("weights")) s.weights = state.at("weights");
        if (state.contains("device")) s.device = state.at("device").get<std::vector<std::string>>();
        checkpoint.model = read_checked((fs::path(path) / kModelFile).string(), state.at("files").at(kModelFile));
        checkpoint.optimizer =
            read_checked((fs::path(path) / kOptimizerFile).string(), state.at("files").at(kOptimizerFile));
    } catch (const json::exception& e) {
        fail(ErrorKind::kData, "{}: damaged checkpoint: {}; resume from an older one", where, e.what());
    }
    return checkpoint;
}

std::string newest_checkpoint(const std::string& folder) {
    const std::vector<int64_t> steps = checkpoint_steps(folder);
    return steps.empty() ? "" : (fs::path(folder) / checkpoint_name(steps.back())).string();
}

}  // namespace lockstep
