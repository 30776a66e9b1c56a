// lockstep inspect: what a run directory, a checkpoint, a safetensors file or a file of data holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/data_facts.hpp"
#include "data/idx_file.hpp"
#include "inspect_data.hpp"
#include "io/files.hpp"
#include "io/safetensors.hpp"
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
    if (fs::exists(run.file("run.json"), ignored)) result["run"] = Json::parse(text_file(run.file("run.json")));
    const int64_t finished = run.finished_steps();
    result["finished"] = finished >= 0;
    if (fs::exists(run.file("metrics.jsonl"), ignored)) {
        const std::string metrics = text_file(run.file("metrics.jsonl"));
        Json last = Json::object();
        for (std::size_t at = 0; at < metrics.size();) {
            const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
            const Json line = Json::parse(metrics.substr(at, end - at), nullptr, false);
            if (line.is_object() && line.contains("event")) last[line.at("event").get<std::string>()] = line;
            at = end + 1;
        }
        result["last"] = last;
    }
    const std::string newest = newest_checkpoint(run.checkpoints());
    if (!newest.empty()) result["checkpoint"] = newest;
    return result;
}

Json describe_idx(const std::string& path) {
    const IdxArray array = read_idx(path);
    return {{"kind", "idx"},
            {"path", path},
            {"type", idx_type_name(array.type)},
            {"extents", array.extents},
            {"hash", hex16(array.hash)}};
}

/// The format of a table by its name, packed or not; empty: of no table.
std::string table_format(std::string name) {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const auto ends_with = [&](std::initializer_list<const char*> endings) {
        return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
    };
    if (ends_with({".csv", ".tsv"})) return "csv";
    if (ends_with({".libsvm", ".svmlight", ".svm"})) return "libsvm";
    return ends_with({".npz"}) ? "npz" : "";
}

/// What data.format would make of it without a word about its columns.
Json describe_table(const std::string& path, const std::string& format) {
    Config config;
    config.data.format = format;
    config.data.train.paths = {path};
    if (path.find(".tsv") != std::string::npos) config.data.separator = "\t";
    const DataFacts facts = data_facts(config);
    return {{"kind", format},           {"path", path},
            {"samples", facts.samples}, {"shape", {facts.shape.height, facts.shape.width, facts.shape.channels}},
            {"classes", facts.classes},  // 0: a regression
            {"read_as", facts.notes}};
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
    if (!fs::exists(path)) fail(ErrorKind::kData, "{}: no such file or folder", path);
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
    if (auto facts = describe_data(path)) return *facts;
    if (const std::string format = table_format(name); !format.empty()) return describe_table(path, format);
    return describe_idx(path);
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
        } else if (key == "class_names") {
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
