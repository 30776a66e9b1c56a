// Layers over defaults: every setting is read against its row of the table, pairs are resolved, rules are checked, and
// all faults are reported together.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "config/config.hpp"
#include "config/key.hpp"
#include "config/layers.hpp"
#include "config/read_tables.hpp"
#include "config/read_value.hpp"
#include "config/rules.hpp"

namespace lockstep {
namespace {

/// Absolute, starting at the folder of whoever set it, without detours: a folder and the ".." behind it cancel each
/// other, but for a symbolic link, whose ".." is elsewhere, and for a folder that is not there.
std::string absolute_path(const std::string& path, const std::string& directory) {
    namespace fs = std::filesystem;
    if (path.empty()) return path;
    fs::path shortest;
    for (const fs::path& part : fs::path(directory) / path) {
        std::error_code ignored;
        const bool at_root = !shortest.empty() && !shortest.has_relative_path();
        if (part == "." || part.empty() || (part == ".." && at_root)) continue;
        const bool cancels = part == ".." && shortest.filename() != ".." &&
                             fs::symlink_status(shortest, ignored).type() == fs::file_type::directory;
        shortest = cancels ? shortest.parent_path() : shortest / part;
    }
    return shortest.string();
}

class Loader {
  public:
    Loader() {
        for (const Key& key : config_keys()) loaded_.origins[std::string(key.name)] = "default";
    }

    void apply(const ConfigLayer& layer) {
        std::map<std::string_view, std::string> set_here;  // members of pairs that this layer sets, and where
        for (const Setting& setting : layer.settings) {
            if (!setting.fault.empty()) {
                faults_.push_back(setting.fault);
                continue;
            }
            const Key* key = find_key(setting.name);
            if (key == nullptr) {
                apply_part(setting, layer.directory);
                continue;
            }
            if (key->field.type == KeyType::kTables) {
                apply_tables(*key, setting);
                continue;
            }
            ReadValue read = read_value(*key, setting.value);
            if (read.fault.empty()) check_paths_utf8(*key, layer.directory, read);
            if (!read.fault.empty()) {
                faults_.push_back(setting.origin + ": " + read.fault + advice(*key, layer));
                broken_.insert(std::string(key->name));
                continue;
            }
            set(*key, std::move(read.value), setting.origin, layer.directory);
            if (partner_of(*key) != nullptr && is_set(key->field.get(loaded_.config)))
                set_here[key->name] = setting.origin;
        }
        drop_partners(set_here);
    }

    LoadedConfig finish(Layers layers) {
        // Of a file that could not be read nobody knows what it would have set.
        if (layers.complete) {
            for (const std::string& fault : check_rules(loaded_.config, loaded_.origins, broken_))
                faults_.push_back(fault);
        }
        if (!faults_.empty()) throw ConfigError(fmt::format("{}", fmt::join(faults_, "\n")));
        loaded_.warnings = std::move(layers.warnings);
        for (std::string& warning : warn_of_keys(loaded_.config, loaded_.origins))
            loaded_.warnings.push_back(std::move(warning));
        return std::move(loaded_);
    }

  private:
    void set(const Key& key, Value value, const std::string& origin, const std::string& directory) {
        if (auto* paths = std::get_if<DataPaths>(&value)) {
            for (std::string& path : paths->paths) path = absolute_path(path, directory);
        } else if (key.path) {
            value = absolute_path(std::get<std::string>(value), directory);
        }
        key.field.set(loaded_.config, value);
        loaded_.origins[std::string(key.name)] = origin;
    }

    /// Who sets train.epochs to 0 beside train.steps means to leave it out.
    static std::string advice(const Key& key, const ConfigLayer& layer) {
        const Key* const partner = key.field.optional ? partner_of(key) : nullptr;
        for (const Setting& setting : layer.settings) {
            if (partner != nullptr && setting.name == partner->name)
                return fmt::format("; leave it out where {} is set", partner->name);
        }
        return "";
    }

    /// The whole array: a later layer's takes the place of an earlier one's.
    void apply_tables(const Key& key, const Setting& setting) {
        ReadTables read = read_tables(key, setting.value, setting.origin, setting.file);
        if (!read.faults.empty()) {
            faults_.insert(faults_.end(), read.faults.begin(), read.faults.end());
            broken_.insert(std::string(key.name));
            return;
        }
        set(key, std::move(read.tables), setting.origin, "");
    }

    /// data.train.images and the like: one path of a table, the other stays.
    void apply_part(const Setting& setting, const std::string& directory) {
        const size_t dot = setting.name.rfind('.');
        const Key& key = key_of(std::string_view(setting.name).substr(0, dot));
        const auto* path = std::get_if<std::string>(&setting.value.data);
        if (path == nullptr || !is_utf8(*path)) {
            faults_.push_back(
                fmt::format("{}: {} must be a path, got {}", setting.origin, setting.name, describe(setting.value)));
            broken_.insert(std::string(key.name));
            return;
        }
        DataPaths paths = std::get<DataPaths>(key.field.get(loaded_.config));
        paths.paths.clear();
        (setting.name.substr(dot + 1) == "images" ? paths.images : paths.labels) = absolute_path(*path, directory);
        key.field.set(loaded_.config, paths);
        loaded_.origins[std::string(key.name)] = setting.origin;
    }

    /// A path that cannot be written to config.resolved.toml would make a run that cannot be resumed.
    static void check_paths_utf8(const Key& key, const std::string& directory, ReadValue& read) {
        if ((key.path || key.field.type == KeyType::kPaths) && !is_utf8(directory)) {
            read.fault = fmt::format("{}: the folder that its path starts at is not UTF-8", key.name);
        }
    }

    void drop_partners(const std::map<std::string_view, std::string>& set_here) {
        for (const KeyPair& pair : config_pairs()) {
            const auto first = set_here.find(pair.first), second = set_here.find(pair.second);
            if (first != set_here.end() && second != set_here.end()) {
                faults_.push_back(fmt::format("{}: {} and {} are both set; set exactly one", second->second, pair.first,
                                              pair.second));
            } else if (first != set_here.end()) {
                drop(key_of(pair.second), first->second);
            } else if (second != set_here.end()) {
                drop(key_of(pair.first), second->second);
            }
        }
    }

    void drop(const Key& key, const std::string& by) {
        if (!is_set(key.field.get(loaded_.config))) return;
        key.field.set(loaded_.config, key.field.optional ? Value() : Value(int64_t{0}));
        loaded_.origins[std::string(key.name)] = by;
    }

    LoadedConfig loaded_;
    std::vector<std::string> faults_;
    std::set<std::string> broken_;  // keys with a fault of their own
};

}  // namespace

LoadedConfig load_config(const ConfigSources& sources) {
    Layers layers = collect_layers(sources);
    Loader loader;
    for (const ConfigLayer& layer : layers.layers) loader.apply(layer);
    LoadedConfig loaded = loader.finish(std::move(layers));
    loaded.name = sources.files.empty() ? "run" : std::filesystem::path(sources.files.back()).stem().string();
    return loaded;
}

}  // namespace lockstep
