// A config as TOML, as JSON, and beside another one.
#include <fmt/format.h>

#include <algorithm>

#include "config/key.hpp"

namespace lockstep {
namespace {

/// The rows of a section that are in force; every section of the table has keys of its own.
std::vector<const Key*> keys_in_force(const Section& section, const Config& config) {
    std::vector<const Key*> keys;
    for (const Key& key : config_keys()) {
        if (section_of(key) == section.name && in_force(key, config)) keys.push_back(&key);
    }
    return keys;
}

/// An array of tables that holds any; an empty one is printed as a plain key.
bool is_tables(const Key& key, const Config& config) {
    return key.field.type == KeyType::kTables && key.field.get(config) != Value(std::vector<ConfigTable>());
}

std::string comment_of(const Key& key, const Origins& origins) {
    const auto origin = origins.find(std::string(key.name));
    std::string comment(key.unit);
    if (origin != origins.end()) comment += (comment.empty() ? "" : "; ") + one_line(origin->second);
    return comment;
}

/// [[model.layers]] and its entries, for each table; legal behind all plain keys of its section.
std::string arrays_of_tables(const std::vector<const Key*>& keys, const Config& config, bool with_origins) {
    std::string out;
    for (const Key* key : keys) {
        if (!is_tables(*key, config)) continue;
        const Value value = key->field.get(config);
        for (const ConfigTable& table : std::get<std::vector<ConfigTable>>(value)) {
            const std::string comment = with_origins ? one_line(table.origin) : "";
            out += fmt::format("\n[[{}]]{}{}\n", key->name, comment.empty() ? "" : "  # ", comment);
            for (const std::string& entry : toml_entries(table)) out += entry + "\n";
        }
    }
    return out;
}

}  // namespace

std::string config_to_toml(const Config& config, const Origins* origins) {
    constexpr size_t kWidest = 48;  // comments line up behind shorter lines only
    std::string out;
    for (const Section& section : config_sections()) {
        const std::vector<const Key*> in_force = keys_in_force(section, config);
        std::vector<const Key*> keys;
        for (const Key* key : in_force) {
            if (!is_tables(*key, config)) keys.push_back(key);
        }
        if (!section.name.empty()) out += fmt::format("\n[{}]\n", section.name);
        std::vector<std::string> lines;
        size_t width = 0;
        for (const Key* key : keys) {
            lines.push_back(fmt::format("{} = {}", name_in_section(*key), toml_text(key->field.get(config))));
            if (lines.back().size() <= kWidest) width = std::max(width, lines.back().size());
        }
        for (size_t i = 0; i < keys.size(); ++i) {
            const std::string comment = origins == nullptr ? "" : comment_of(*keys[i], *origins);
            out += comment.empty() ? lines[i] + "\n" : fmt::format("{:<{}}  # {}\n", lines[i], width, comment);
        }
        out += arrays_of_tables(in_force, config, origins != nullptr);
    }
    return out;
}

std::string config_to_json(const Config& config) {
    std::vector<std::string> members;
    for (const Section& section : config_sections()) {
        std::vector<std::string> entries;
        for (const Key* key : keys_in_force(section, config)) {
            entries.push_back(
                fmt::format("{}: {}", in_quotes(name_in_section(*key)), json_text(key->field.get(config))));
        }
        if (section.name.empty()) {
            members.insert(members.end(), entries.begin(), entries.end());
        } else {
            members.push_back(fmt::format("{}: {{{}}}", in_quotes(section.name), fmt::join(entries, ", ")));
        }
    }
    return fmt::format("{{{}}}", fmt::join(members, ", "));
}

namespace {

/// Whether an evaluation decides more than which lines are written.
bool goes_by_evaluations(const Config& config) {
    return config.schedule.name == "plateau" || !config.train.stop_metric.empty() || !config.checkpoint.best.empty();
}

}  // namespace

std::vector<KeyDifference> config_differences(const Config& left, const Config& right) {
    const bool evaluations = goes_by_evaluations(left) || goes_by_evaluations(right);
    const bool native = left.reduce.algorithm == "native" || right.reduce.algorithm == "native";
    std::vector<KeyDifference> differences;
    for (const Key& key : config_keys()) {
        const Value a = key.field.get(left), b = key.field.get(right);
        if (a == b) continue;
        // The transport's all-reduce may add in another order when the message has another size, or it is another one.
        const bool of_transport =
            key.name == "reduce.bucket_kib" || key.name == "reduce.small_kib" || key.name == "device.transport";
        differences.push_back(
            {std::string(key.name), toml_text(a), toml_text(b),
             (native && of_transport) || (evaluations && section_of(key) == "eval") ? KeyEffect::kBits : key.effect});
    }
    return differences;
}

}  // namespace lockstep
