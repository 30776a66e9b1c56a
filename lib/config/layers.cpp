#include "config/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "config/key.hpp"
#include "config/nearest.hpp"

namespace lockstep {
namespace {

bool is_settable(std::string_view name) {
    const std::vector<std::string> names = settable_names();
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_section(std::string_view name) {
    for (const Section& section : config_sections()) {
        if (!section.name.empty() && section.name == name) return true;
    }
    return false;
}

std::string nearest_section(const std::string& name) {
    std::vector<std::string> sections;
    for (const Section& section : config_sections()) {
        if (!section.name.empty()) sections.emplace_back(section.name);
    }
    return nearest(name, sections);
}

/// Takes tables apart until every setting is of one key, and names what is no key.
class Flattener {
  public:
    /// `file` gives each entry its own position; without it all have `origin`.
    Flattener(ConfigLayer& layer, std::string file) : layer_(layer), file_(std::move(file)) {}

    void add(const std::string& name, const TomlValue& value, const std::string& origin) {
        const auto* table = std::get_if<TomlTable>(&value.data);
        const Key* key = find_key(name);
        if (table != nullptr && is_section(name)) {
            add_entries(name + ".", *table, origin);
        } else if (table != nullptr && key != nullptr && key->field.type == KeyType::kPaths) {
            add_paths(name + ".", *table, origin);
        } else if (is_settable(name)) {
            layer_.settings.push_back({name, value, origin, "", file_});
        } else if (is_section(name)) {
            add_fault(fmt::format("{}: {} is a section ([{}]), got {}", origin, name, name, describe(value)));
        } else if (table != nullptr && name.find('.') == std::string::npos) {
            add_fault(
                fmt::format("{}: {}: unknown section{}", origin, one_line(name), did_you_mean(nearest_section(name))));
        } else {
            add_fault(fmt::format("{}: {}: unknown key{}", origin, one_line(name), did_you_mean(nearest_key(name))));
        }
    }

    /// The parts of data.train together are one value, which stands where data.train does.
    void add_paths(const std::string& prefix, const TomlTable& table, const std::string& origin) {
        TomlTable unknown;
        for (const TomlEntry& entry : table) {
            if (is_settable(prefix + entry.name)) {
                layer_.settings.push_back({prefix + entry.name, entry.value, origin});
            } else {
                unknown.push_back(entry);
            }
        }
        add_entries(prefix, unknown, origin);
    }

    void add_entries(const std::string& prefix, const TomlTable& table, const std::string& origin) {
        for (const TomlEntry& entry : table) {
            add(prefix + entry.name, entry.value,
                file_.empty() ? origin : fmt::format("{}:{}:{}", file_, entry.line, entry.column));
        }
    }

    void add_fault(std::string line) { layer_.settings.push_back({"", {}, "", std::move(line)}); }

  private:
    ConfigLayer& layer_;
    std::string file_;
};

/// The text of a file, or the system's reason why not.
std::pair<std::string, std::string> read_text(const std::string& path) {
    const auto why = [](int reason) { return std::pair(std::string(), std::string(std::strerror(reason))); };
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return why(EISDIR);
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream.is_open()) return why(errno);
    std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    return stream.bad() ? why(EIO) : std::pair(std::move(text), std::string());
}

void add_file(const std::string& path, Layers& out) {
    const std::string name = path.empty() ? "-c \"\"" : one_line(path);  // a script's variable that is not set
    std::error_code ignored;
    ConfigLayer layer{std::filesystem::absolute(path, ignored).parent_path().string(), {}};
    Flattener flattener(layer, name);
    const auto [text, reason] = read_text(path);
    const TomlDocument document = parse_toml(text, name);
    if (!reason.empty()) {
        flattener.add_fault(fmt::format("{}: cannot be read: {}", name, reason));
    } else if (!document.fault.empty()) {
        flattener.add_fault(document.fault);
    } else {
        flattener.add_entries("", document.table, "");
    }
    out.complete = out.complete && reason.empty() && document.fault.empty();
    out.layers.push_back(std::move(layer));
}

/// A variable's or --set's value: TOML, else a string. Where the key takes a string, 2024 or true is one, too.
TomlValue loose_value(std::string_view name, const std::string& text) {
    const std::optional<TomlValue> value = parse_toml_value(text);
    if (!value) return {text};
    const Key* key = find_key(name);
    const bool takes_string = key == nullptr ? is_settable(name) : key->field.type == KeyType::kString;
    const bool is_scalar = value->data.index() < 5 && !std::holds_alternative<std::string>(value->data);
    return takes_string && is_scalar ? TomlValue{text} : *value;
}

void add_environment(const ConfigSources& sources, Layers& out) {
    std::map<std::string, std::string> keys;  // by variable
    std::vector<std::string> variables;
    for (const std::string& name : settable_names()) {
        variables.push_back(environment_name(name));
        keys[variables.back()] = name;
    }
    ConfigLayer layer{sources.directory, {}};
    Flattener flattener(layer, "");
    for (const auto& [variable, text] : sources.environment) {
        if (variable.starts_with("LOCKSTEP_DEBUG_")) continue;
        const auto found = keys.find(variable);
        if (found != keys.end()) {
            flattener.add(found->second, loose_value(found->second, text), variable);
            continue;
        }
        out.warnings.push_back(fmt::format("{}: no such config variable{}", one_line(variable),
                                           did_you_mean(nearest(variable, variables))));
    }
    out.layers.push_back(std::move(layer));
}

void add_sets(const ConfigSources& sources, Layers& out) {
    ConfigLayer layer{sources.directory, {}};
    Flattener flattener(layer, "");
    for (const std::string& set : sources.sets) {
        const std::string origin = "--set " + one_line(set);
        const size_t equals = set.find('=');
        if (equals == std::string::npos || equals == 0) {
            flattener.add_fault(origin + ": must be KEY=VALUE, for example batch.size=64");
            continue;
        }
        std::string name = set.substr(0, equals);
        std::erase(name, ' ');
        flattener.add(name, loose_value(name, set.substr(equals + 1)), origin);
    }
    out.layers.push_back(std::move(layer));
}

}  // namespace

Layers collect_layers(const ConfigSources& sources) {
    Layers out;
    for (const std::string& path : sources.files) add_file(path, out);
    add_environment(sources, out);
    add_sets(sources, out);
    return out;
}

}  // namespace lockstep
