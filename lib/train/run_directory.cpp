#include "train/run_directory.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "io/files.hpp"
#include "train/checkpoint.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Files and folders that were being written, or removed, when a run was killed. Their final names were never given.
void remove_leftovers(const std::string& folder) {
    std::error_code ignored;
    std::vector<fs::path> leftovers;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename().string();
        for (const char* start : {".lockstep-tmp-", ".writing-", ".remove-"}) {
            if (name.starts_with(start)) leftovers.push_back(entry.path());
        }
    }
    for (const fs::path& leftover : leftovers) fs::remove_all(leftover, ignored);
}

}  // namespace

bool RunDirectory::holds_run() const {
    for (const char* name : {"run.json", "metrics.jsonl", "config.resolved.toml", "checkpoints", "model.safetensors"}) {
        std::error_code ignored;
        if (fs::exists(file(name), ignored)) return true;
    }
    return false;
}

/// The last one of metrics.jsonl; null if it has none.
nlohmann::json RunDirectory::end_event() const {
    std::error_code ignored;
    if (!fs::exists(file("metrics.jsonl"), ignored)) return nullptr;
    const std::vector<std::byte> bytes = read_file(file("metrics.jsonl"));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t at = text.rfind(R"({"event":"end")");
    if (at == std::string::npos) return nullptr;
    auto event = nlohmann::json::parse(text.substr(at, text.find('\n', at) - at), nullptr, false);
    // Cut off while it was written: not finished.
    return event.is_discarded() || !event.contains("steps") ? nlohmann::json(nullptr) : std::move(event);
}

int64_t RunDirectory::finished_steps() const {
    const nlohmann::json event = end_event();
    return event.is_null() || !event["steps"].is_number_integer() ? -1 : event["steps"].get<int64_t>();
}

std::string RunDirectory::final_sha256() const {
    const nlohmann::json event = end_event();
    return event.is_null() || !event.contains("sha256") || !event["sha256"].is_string()
               ? ""
               : event["sha256"].get<std::string>();
}

bool RunDirectory::finished_early() const {
    const nlohmann::json event = end_event();
    return !event.is_null() && event.value("early", false);
}

void RunDirectory::refuse_run(ResumeMode mode) const {
    if (mode == ResumeMode::kAuto || !holds_run()) return;
    const bool never = mode == ResumeMode::kNever;
    if (!newest_checkpoint(checkpoints()).empty() || finished_steps() >= 0) {
        fail(ErrorKind::kUsage, "{}: holds a run already; choose another --out{}", path_,
             never ? ", or go on with --resume auto" : "");
    }
    std::error_code ignored;
    const auto recorded = fs::file_size(file("metrics.jsonl"), ignored);
    const bool any = !ignored && recorded > 0;
    fail(ErrorKind::kUsage, "{}: holds a run already, which {}; choose another --out{}", path_,
         any ? "left no checkpoint" : "recorded no step",
         never ? fmt::format(", or start it anew{} with --resume auto", any ? " from step 1" : "") : "");
}

void RunDirectory::claim() {
    if (lock_.take(path_)) return;
    fail(ErrorKind::kUsage, "{}: another process is training into it; wait for its end, or choose another --out",
         path_);
}

void RunDirectory::prepare(ResumeMode mode) {
    // A run that is at work is not one that ended without a step: the lock tells them apart.
    if (mode != ResumeMode::kAuto && holds_run()) claim();
    refuse_run(mode);
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) fail(ErrorKind::kRuntime, "{}: cannot create the run directory: {}", path_, error.message());
    if (access(path_.c_str(), W_OK | X_OK) != 0) {
        fail(ErrorKind::kRuntime, "{}: the run directory cannot be written to", path_);
    }
    claim();
    refuse_run(mode);  // of a process that was faster, and is done
    clear_leftovers();
}

void RunDirectory::clear_leftovers() const {
    remove_leftovers(path_);
    remove_leftovers(checkpoints());
}

std::string run_json(const RunFacts& facts) {
    nlohmann::ordered_json run = {{"argv", facts.argv},   {"version", facts.version}, {"world", facts.world},
                                  {"hosts", facts.hosts}, {"devices", facts.devices}, {"arithmetic", facts.arithmetic},
                                  {"start", facts.start}};
    if (!facts.end.empty()) run["end"] = facts.end;
    if (!facts.device.empty()) run["device"] = facts.device;
    return run.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

std::string compact_now() {
    return fmt::format("{:%Y%m%d-%H%M%S}",
                       fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace lockstep
