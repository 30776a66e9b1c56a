// lockstep inspect: what a run directory, a checkpoint, a safetensors file or a file of data holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "inspect_data.hpp"
#include "io/files.hpp"
#include "io/json_depth.hpp"
#include "io/safetensors.hpp"
#include "io/shown_path.hpp"
#include "launch.hpp"
#include "train/checkpoint.hpp"
#include "train/run_directory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string text_file(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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
    const Checkpoint checkpoint = read_checkpoint(path);  // checks every file
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

Json describe_run(const std::string& path) {
    const RunDirectory run(path);
    Json result = {{"kind", "run"}, {"path", path}};
    std::error_code ignored;
    if (const std::string file = run.file("run.json"); fs::exists(file, ignored)) {
        const std::string text = text_file(file);
        check_json_depth(text, file);
        result["run"] = Json::parse(text, nullptr, false);
        if (!result["run"].is_object()) fail(ErrorKind::kData, "{}: damaged: it holds no JSON object", file);
    }
    const int64_t finished = run.finished_steps();
    result["finished"] = finished >= 0;
    if (fs::exists(run.file("metrics.jsonl"), ignored)) {
        const std::string metrics = text_file(run.file("metrics.jsonl"));
        Json last = Json::object();
        for (std::size_t at = 0; at < metrics.size();) {
            const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
            const std::string text = metrics.substr(at, end - at);
            check_json_depth(text, run.file("metrics.jsonl"));
            const Json line = Json::parse(text, nullptr, false);
            const auto event = line.is_object() ? line.find("event") : line.end();
            if (event != line.end() && event->is_string()) last[event->get<std::string>()] = line;
            at = end + 1;
        }
        result["last"] = last;
    }
    const std::string newest = newest_checkpoint(run.checkpoints());
    if (!newest.empty()) result["checkpoint"] = newest;
    return result;
}

/// checkpoints/latest holds a name, of a folder beside it.
Json describe_latest(const std::string& path) {
    std::string name = text_file(path);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    const fs::path named = fs::path(path).parent_path() / name;
    if (name.empty() || !fs::exists(named / "state.json")) {
        fail(ErrorKind::kData, "{}: names {}, which is no checkpoint beside it", path, name.empty() ? "nothing" : name);
    }
    return describe_checkpoint(named.string());
}

Json describe(const std::string& path) {
    if (!fs::exists(path)) fail(ErrorKind::kData, "{}: no such file or folder", shown_path(path));
    if (fs::is_directory(path)) {
        if (fs::exists(fs::path(path) / "state.json")) return describe_checkpoint(path);
        if (RunDirectory(path).holds_run()) return describe_run(path);
        if (auto facts = describe_data(path)) return *facts;
        fail(ErrorKind::kUsage, "{}: neither a run directory, a checkpoint nor a folder of pictures", path);
    }
    if (fs::is_other(path)) fail(ErrorKind::kData, "{}: it is no file", path);
    const std::string name = fs::path(path).filename().string();
    if (name == "latest") return describe_latest(path);
    if (name.ends_with(".toml")) {
        fail(ErrorKind::kUsage,
             "{}: a config, not data: lockstep config show -c {} prints it, lockstep plan -c {} tells what it will do",
             path, path, path);
    }
    if (name.ends_with(".safetensors")) return describe_safetensors(path);
    return *describe_data(path);
}

/// One line a fact; a tensor list as a table.
std::string as_text(const Json& facts) {
    std::string text;
    for (const auto& [key, value] : facts.items()) {
        if (key == "tensors") {
            for (const Json& t : value) {
                text +=
                    fmt::format("  {:<32} {} [{}]\n", t.at("name").get<std::string>(), t.at("dtype").get<std::string>(),
                                fmt::join(t.at("shape").get<std::vector<int64_t>>(), ", "));
            }
        } else if (key == "device" || key == "read_as") {
            for (const Json& line : value) text += fmt::format("{}: {}\n", key, line.get<std::string>());
        } else if (key == "class_names" || key == "arrays") {
            text += fmt::format("{}: {}\n", key, fmt::join(value.get<std::vector<std::string>>(), ", "));
        } else if (value.is_object()) {
            for (const auto& [inner, v] : value.items())
                text += fmt::format("{}.{}: {}\n", key, inner, v.is_string() ? v.get<std::string>() : v.dump());
        } else {
            text += fmt::format("{}: {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
        }
    }
    return text;
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("inspect", "What a run, a checkpoint, a safetensors file or a file of data holds");
    const auto path = std::make_shared<std::string>();
    const auto json = std::make_shared<bool>(false);
    command->add_option("path", *path, "File or folder")->type_name("FILE|DIR")->required();
    command->add_flag("--json", *json, "One JSON document");
    command->callback([=, &invocation] {
        invocation.action = on_first_rank(invocation, [=] {
            const Json facts = describe(*path);
            print_result(*json ? facts.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : as_text(facts));
            return 0;
        });
    });
}

}  // namespace lockstep
