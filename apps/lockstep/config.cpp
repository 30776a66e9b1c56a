// lockstep config init | show | check | schema | reference | import: the config without any work.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "commands.hpp"
#include "config/key_table.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "explain/config_import.hpp"
#include "io/json_number.hpp"
#include "launch.hpp"
#include "train/config_check.hpp"

namespace lockstep {
namespace {

struct ConfigCommand {
    ConfigOptions config;
    std::string file;
    bool json = false;
    std::string from;                // import: whose flags
    std::vector<std::string> words;  // import: the command line
};

int init(const ConfigCommand& command) {
    const std::string text = config_starter();
    if (command.file.empty() || command.file == "-") {
        print_result(text);
        return 0;
    }
    // "x": the system itself refuses a file that exists, also one that appears meanwhile.
    std::FILE* file = std::fopen(command.file.c_str(), "wx");
    if (file == nullptr && errno == EEXIST) {
        fail(ErrorKind::kUsage, "{} exists and is not overwritten; name another file or remove it", command.file);
    }
    if (file == nullptr) fail(ErrorKind::kRuntime, "{} cannot be written: {}", command.file, std::strerror(errno));
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !written) {
        const int reason = errno;
        std::remove(command.file.c_str());
        fail(ErrorKind::kRuntime, "{} cannot be written: {}", command.file, std::strerror(reason));
    }
    print_result(fmt::format("{}\n", command.file));
    return 0;
}

int show(const ConfigCommand& command) {
    const LoadedConfig loaded = command.config.load();
    if (!command.json) {
        print_result(config_to_toml(loaded.config, &loaded.origins));
        return 0;
    }
    std::vector<std::string> origins;
    for (const auto& [key, origin] : loaded.origins) origins.push_back(json_string(key) + ": " + json_string(origin));
    print_result(fmt::format("{{\"config\": {}, \"origins\": {{{}}}}}\n", config_to_json(loaded.config),
                             fmt::join(origins, ", ")));
    return 0;
}

int check(const ConfigCommand& command) {
    LoadedConfig loaded = command.config.load();
    for (const std::string& warning : check_without_data(loaded.config)) {
        warn_line(warning);
        loaded.warnings.push_back(warning);
    }
    size_t set = 0;
    for (const auto& [key, origin] : loaded.origins) set += origin == "default" ? 0 : 1;
    const size_t keys = loaded.origins.size();
    if (command.json) {
        std::vector<std::string> warnings;
        for (const std::string& warning : loaded.warnings) warnings.push_back(json_string(warning));
        print_result(fmt::format("{{\"ok\": true, \"keys\": {}, \"set\": {}, \"warnings\": [{}]}}\n", keys, set,
                                 fmt::join(warnings, ", ")));
    } else {
        print_result(fmt::format("ok: {} ({} of {} keys set)\n", fmt::join(command.config.files(), ", "), set, keys));
    }
    return 0;
}

int translate(const ConfigCommand& command) {
    const ImportedConfig imported = import_config(command.from, command.words);
    for (const std::string& flag : imported.refused) warn_line(flag);
    for (const std::string& flag : imported.changed) warn_line(flag);
    print_result(imported.toml);
    return 0;
}

}  // namespace

void add_config(CLI::App& app, Invocation& invocation) {
    const auto command = std::make_shared<ConfigCommand>();
    const auto choose = [command, &invocation](CLI::App* sub, int (*action)(const ConfigCommand&)) {
        sub->callback([command, &invocation, action] {
            invocation.action = on_first_rank(invocation, [command, action] { return action(*command); });
        });
        return sub;
    };
    CLI::App* config = app.add_subcommand("config", "Write, print and check config files");
    config->require_subcommand(1);

    CLI::App* sub = choose(config->add_subcommand("init", "Write a starter file for Fashion-MNIST"), init);
    sub->add_option("file", command->file, "Where to; without it to stdout. An existing file is refused")
        ->type_name("FILE");

    sub = choose(config->add_subcommand("show", "Print every key in force with its origin"), show);
    command->config.add_to(*sub);
    sub->add_flag("--json", command->json, "One JSON document");

    sub = choose(
        config->add_subcommand("check", "Validate as far as no data are needed: exit 0, or a line for each fault"),
        check);
    command->config.add_to(*sub, true);
    sub->add_flag("--json", command->json, "One JSON document");

    sub = choose(config->add_subcommand("schema", "Print the JSON Schema of a config file"), [](const ConfigCommand&) {
        print_result(config_schema());
        return 0;
    });
    sub->add_flag("--json", command->json, "JSON it is, with or without");
    sub = choose(config->add_subcommand("import", "Translate another trainer's command line to a config on stdout"),
                 translate);
    sub->add_option("--from", command->from, "Whose flags they are")
        ->type_name("tf_cnn_benchmarks|estimator|horovod|ddp")
        ->required();
    sub->add_option("flags", command->words, "Behind --: the command line, with or without what starts it")
        ->type_name("FLAGS");
    choose(config->add_subcommand("reference", "Print the reference page of all keys (docs/config.md)"),
           [](const ConfigCommand&) {
               print_result(config_reference());
               return 0;
           });
}

}  // namespace lockstep
