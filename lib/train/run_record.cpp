#include "train/run_record.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/files.hpp"
#include "io/json_depth.hpp"
#include "train/checkpoint.hpp"
#include "train/run_directory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool exists(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

std::string text_of(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void read_config(const RunDirectory& run, RunRecord& record) {
    const std::string file = run.file("config.resolved.toml");
    if (!exists(file)) fail(ErrorKind::kData, "{}: damaged run: {} is missing", run.path(), file);
    try {
        record.config = load_config({{file}, {}, {}, fs::current_path().string()}).config;
    } catch (const ConfigError& e) {
        fail(ErrorKind::kData, "{}: damaged run, or another version's: {}", run.path(), e.what());
    }
}

void read_facts(const RunDirectory& run, RunRecord& record) {
    const std::string file = run.file("run.json");
    if (!exists(file)) return;
    try {
        const std::string text = text_of(file);
        check_json_depth(text, file);
        const json facts = json::parse(text);
        record.version = facts.at("version");
        record.arithmetic = facts.at("arithmetic");
        record.world = facts.at("world");
        record.hosts = facts.at("hosts").get<std::vector<std::string>>();
        record.devices = facts.at("devices").get<std::vector<std::string>>();
    } catch (const json::exception& e) {
        fail(ErrorKind::kData, "{}: damaged: {}", file, e.what());
    }
}

void read_event(const std::string& line, const std::string& where, RunRecord& record) {
    try {
        check_json_depth(line, where);
        const auto event = nlohmann::ordered_json::parse(line);
        const std::string kind = event.at("event");
        RunEvent read{event.at(kind == "end" ? "steps" : "step"), {}};
        for (const auto& [name, value] : event.items()) {
            if (name != "wall" && name != "event") read.fields[name] = value.dump();
        }
        if (kind == "step")
            record.steps.push_back(std::move(read));
        else if (kind == "eval")
            record.evaluations.push_back(std::move(read));
        else if (kind == "end")
            record.end = std::move(read);
    } catch (const json::exception& e) {
        fail(ErrorKind::kData, "{}: damaged: {}", where, e.what());
    }
}

void read_metrics(const RunDirectory& run, RunRecord& record) {
    const std::string file = run.file("metrics.jsonl");
    if (!exists(file)) return;
    const std::string text = text_of(file);
    int64_t number = 0;
    // A last line without an end was being written when the run was killed.
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        read_event(text.substr(begin, end - begin), fmt::format("{}:{}", file, ++number), record);
    }
}

void read_fingerprints(const RunDirectory& run, RunRecord& record) {
    if (record.trace) record.train_data = record.trace->start().data;
    if (record.checkpoints.empty()) return;
    const std::string path = run.checkpoints() + "/" + checkpoint_name(record.checkpoints.back());
    try {
        const std::string text = read_checkpoint_state_text(path);
        check_json_depth(text, path + "/state.json");
        const json data = json::parse(text).at("data");
        record.train_data = data.at("train");
        record.test_data = data.at("test");
    } catch (const json::exception& e) {
        fail(ErrorKind::kData, "{}/state.json: damaged checkpoint: {}", path, e.what());
    }
}

}  // namespace

int64_t RunRecord::last_step() const {
    if (end) return end->step;
    int64_t last = steps.empty() ? 0 : steps.back().step;
    if (trace) last = std::max(last, trace->last_step());
    if (!checkpoints.empty()) last = std::max(last, checkpoints.back());
    return last;
}

RunRecord read_run_record(const std::string& path) {
    const RunDirectory run(path);
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) fail(ErrorKind::kUsage, "{}: no run directory", path);
    if (!run.holds_run()) fail(ErrorKind::kUsage, "{}: holds no run", path);
    RunRecord record;
    record.path = path;
    read_config(run, record);
    read_facts(run, record);
    read_metrics(run, record);
    const auto traced = fs::file_size(run.file("trace.jsonl"), ignored);  // 0 until its first line is written
    if (!ignored && traced > 0) record.trace = TraceFile::read(run.file("trace.jsonl"));
    record.checkpoints = checkpoint_steps(run.checkpoints());
    read_fingerprints(run, record);
    return record;
}

}  // namespace lockstep
