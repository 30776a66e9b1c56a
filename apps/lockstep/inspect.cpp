// lockstep inspect: what a run directory, a checkpoint, a safetensors file or a file of data holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "core/error.hpp"
#include "inspect_data.hpp"
#include "inspect_run.hpp"
#include "io/random_file.hpp"
#include "io/shown_path.hpp"
#include "io/torch_file.hpp"
#include "launch.hpp"
#include "train/checkpoint.hpp"
#include "train/run_directory.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json describe(const std::string& path, bool deep) {
    std::error_code error, ignored;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        fail(ErrorKind::kData, "{}: no such file or folder", shown_path(path));
    }
    if (error) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(path), error.message());
    if (fs::is_directory(status)) {
        if (fs::exists(fs::path(path) / "state.json", ignored)) return describe_checkpoint(path);
        if (RunDirectory(path).holds_run()) return describe_run(path);
        if (!newest_checkpoint(path).empty()) {
            fail(ErrorKind::kUsage, "{}: the checkpoints of a run; name one of them, {}/best, {}/latest, or the run",
                 path, path, path);
        }
        if (auto facts = describe_data(path, deep)) return *facts;
        fail(ErrorKind::kUsage,
             "{}: neither a run directory, a checkpoint, nor a folder of pictures by class, TFRecords or CIFAR's files",
             path);
    }
    if (fs::is_other(status)) fail(ErrorKind::kData, "{}: it is no file", path);
    const std::string name = fs::path(path).filename().string();
    if (name == "latest" || name == "best") return describe_named_checkpoint(path);
    if (name.ends_with(".toml")) {
        fail(ErrorKind::kUsage,
             "{}: a config, not data: lockstep config show -c {} prints it, lockstep plan -c {} tells what it will do",
             path, path, path);
    }
    if (name.ends_with(".safetensors")) return describe_safetensors(path);
    const RandomFile file(path);
    std::vector<std::byte> start(static_cast<size_t>(std::min<int64_t>(file.size(), kTorchStart)));
    file.read(0, start);
    if (is_torch_file(start)) fail(ErrorKind::kData, "{}: {}", path, torch_file_advice(path));
    return *describe_data(path, deep);
}

/// A value as it is, or as JSON writes it; on one line, whatever names it holds.
std::string shown(const Json& value) {
    return shown_path(value.is_string() ? value.get<std::string>()
                                        : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// One line a fact; a tensor list as a table.
std::string as_text(const Json& facts) {
    std::string text;
    for (const auto& [key, value] : facts.items()) {
        if (key == "tensors") {
            for (const Json& t : value) {
                text += fmt::format("  {:<32} {} [{}]\n", shown(t.at("name")), shown(t.at("dtype")),
                                    fmt::join(t.at("shape").get<std::vector<int64_t>>(), ", "));
            }
        } else if (key == "device" || key == "read_as" || key == "damaged") {
            for (const Json& line : value) text += fmt::format("{}: {}\n", key, shown(line));
        } else if (key == "class_names" || key == "arrays") {
            std::vector<std::string> names;
            for (const Json& name : value) names.push_back(shown(name));
            text += fmt::format("{}: {}\n", key, fmt::join(names, ", "));
        } else if (value.is_object()) {
            for (const auto& [inner, v] : value.items())
                text += fmt::format("{}.{}: {}\n", key, shown_path(inner), shown(v));
        } else {
            text += fmt::format("{}: {}\n", key, shown(value));
        }
    }
    return text;
}

int inspect(const std::string& path, bool deep, bool json) {
    const Json facts = describe(path, deep);
    print_result(json ? facts.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : as_text(facts));
    if (!facts.contains("damaged")) return 0;
    const auto damaged = facts.at("damaged").get<std::vector<std::string>>();
    throw Error(ErrorKind::kData, fmt::format("{}", fmt::join(damaged, "\n")));
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("inspect", "What a run, a checkpoint, a safetensors file or a file of data holds");
    const auto path = std::make_shared<std::string>();
    const auto deep = std::make_shared<bool>(false);
    const auto json = std::make_shared<bool>(false);
    command->add_option("path", *path, "File or folder")->type_name("FILE|DIR")->required();
    command->add_flag("--deep", *deep, "Of data: read and decode every sample, and name each that is damaged");
    command->add_flag("--json", *json, "One JSON document");
    command->callback([=, &invocation] {
        invocation.action = on_first_rank(invocation, [=] { return inspect(*path, *deep, *json); });
    });
}

}  // namespace lockstep
