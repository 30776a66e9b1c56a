#include "inspect_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/function_ref.hpp"
#include "core/hash.hpp"
#include "io/files.hpp"
#include "io/json_depth.hpp"
#include "io/safetensors.hpp"
#include "train/checkpoint.hpp"
#include "train/run_directory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

std::string text_file(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What `latest` and `best` say. kData where it is no checkpoint beside them.
std::string named_in(const std::string& path) {
    std::string name = text_file(path);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    const fs::path named = fs::path(path).parent_path() / name;
    if (!name.empty() && is_there(named / "state.json")) return named.string();
    fail(ErrorKind::kData, "{}: names {}, which is no checkpoint beside it", path, name.empty() ? "nothing" : name);
}

class RunInspector {
  public:
    explicit RunInspector(const std::string& path) : run_(path) {
        facts_["kind"] = "run";
        facts_["path"] = path;
    }

    Json facts() && {
        look("run.json", [&](const std::string& file) { read_run_json(file); });
        const int64_t finished = run_.finished_steps();
        facts_["finished"] = finished >= 0;
        look("config.resolved.toml", [&](const std::string& file) {
            static_cast<void>(load_config({{file}, {}, {}, fs::current_path().string()}));
        });
        look("metrics.jsonl", [&](const std::string& file) { read_metrics(file); });
        if (finished >= 0 && !is_there(run_.file("model.safetensors"))) {
            damaged_.push_back(fmt::format("{}: missing, though the run is finished", run_.file("model.safetensors")));
        }
        look("model.safetensors", [&](const std::string& file) { check_model(file); });
        check_checkpoints();
        if (!damaged_.empty()) facts_["damaged"] = damaged_;
        return std::move(facts_);
    }

  private:
    /// What is wrong with one thing is no reason to be silent about the others.
    void note(FunctionRef<void()> action) {
        try {
            action();
        } catch (const Error& error) {
            damaged_.emplace_back(error.what());
        }
    }
    void look(const char* name, FunctionRef<void(const std::string&)> action) {
        const std::string file = run_.file(name);
        if (is_there(file)) note([&] { action(file); });
    }

    void read_run_json(const std::string& file) {
        const std::string text = text_file(file);
        check_json_depth(text, file);
        Json run = Json::parse(text, nullptr, false);
        if (!run.is_object()) fail(ErrorKind::kData, "{}: damaged: it holds no JSON object", file);
        facts_["run"] = std::move(run);
    }

    /// The last event of each kind. A last line without an end was being written when the run was killed.
    void read_metrics(const std::string& file) {
        const std::string metrics = text_file(file);
        Json last = Json::object();
        int64_t number = 0;
        std::string fault;
        for (std::size_t at = 0, end = 0; (end = metrics.find('\n', at)) != std::string::npos; at = end + 1) {
            const std::string text = metrics.substr(at, end - at);
            const std::string where = fmt::format("{}:{}", file, ++number);
            check_json_depth(text, where);
            const Json line = Json::parse(text, nullptr, false);
            if (!line.is_object() && fault.empty()) fault = where + ": damaged: the line holds no JSON object";
            const auto event = line.is_object() ? line.find("event") : line.end();
            if (event != line.end() && event->is_string()) last[event->get<std::string>()] = line;
        }
        facts_["last"] = last;
        if (!fault.empty()) fail(ErrorKind::kData, "{}", fault);
    }

    /// That its tensors can be read, and that it is the file whose sum the run's end tells.
    void check_model(const std::string& file) {
        static_cast<void>(SafetensorsFile::read(file));
        const Json::json_pointer place("/last/end/sha256");
        if (!facts_.contains(place) || facts_.at(place) == sha256_of_file(file)) return;
        fail(ErrorKind::kData, "{}: damaged: its sha256 is not the one of the end event in metrics.jsonl", file);
    }

    void check_checkpoints() {
        std::error_code ignored;
        std::vector<std::string> folders;
        for (const auto& entry : fs::directory_iterator(run_.checkpoints(), ignored)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("step-")) folders.push_back(entry.path().string());
        }
        std::sort(folders.begin(), folders.end());
        for (const std::string& folder : folders) {
            const auto check = [&] {
                if (!is_there(fs::path(folder) / "state.json"))
                    fail(ErrorKind::kData, "{}: damaged checkpoint: it has no state.json", folder);
                static_cast<void>(read_checkpoint(folder));
            };
            const std::size_t before = damaged_.size();
            note(check);
            if (!is_there(folder)) damaged_.resize(before);  // a training that goes on has taken it away meanwhile
        }
        if (const std::string newest = newest_checkpoint(run_.checkpoints()); !newest.empty())
            facts_["checkpoint"] = newest;
        look("checkpoints/best", [&](const std::string& file) { facts_["best"] = named_in(file); });
        look("checkpoints/latest", [](const std::string& file) { static_cast<void>(named_in(file)); });
    }

    RunDirectory run_;
    Json facts_;
    std::vector<std::string> damaged_;
};

}  // namespace

Json describe_safetensors(const std::string& path) {
    const SafetensorsFile file = SafetensorsFile::read(path);
    Json tensors = Json::array();
    int64_t elements = 0;
    for (const TensorView& t : file.tensors()) {
        int64_t count = 1;
        for (const int64_t extent : t.shape) count *= extent;
        elements += count;
        tensors.push_back({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}});
    }
    return {{"kind", "safetensors"},       {"path", path},         {"sha256", sha256_of_file(path)},
            {"metadata", file.metadata()}, {"elements", elements}, {"tensors", tensors}};
}

Json describe_checkpoint(const std::string& path) {
    const Checkpoint checkpoint = read_checkpoint(path);
    const Json state = Json::parse(read_checkpoint_state_text(path));
    Json model = describe_safetensors((fs::path(path) / "model.safetensors").string());
    Json facts = {{"kind", "checkpoint"},
                  {"path", path},
                  {"step", checkpoint.state.step},
                  {"total_steps", checkpoint.state.total_steps},
                  {"version", checkpoint.state.version},
                  {"arithmetic", checkpoint.state.arithmetic},
                  {"data", state.at("data")}};
    if (!checkpoint.state.device.empty()) facts["device"] = checkpoint.state.device;
    facts["elements"] = model.at("elements");
    facts["tensors"] = model.at("tensors");
    facts["config"] = state.at("config");
    return facts;
}

Json describe_named_checkpoint(const std::string& path) {
    return describe_checkpoint(named_in(path));
}

Json describe_run(const std::string& path) {
    return RunInspector(path).facts();
}

}  // namespace lockstep
