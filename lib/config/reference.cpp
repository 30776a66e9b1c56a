// The reference page of the config, made from the table (docs/config.md; a test compares the two).
#include <fmt/format.h>

#include "config/key.hpp"
#include "config/read_value.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kPageHead =
    "# Config reference\n\n"
    "Made by `lockstep config reference` from the table of keys in `lib/config/key_table.cpp`; do not edit by hand.\n\n"
    "A config is a TOML file. Layers, later wins: defaults, the files of `-c` in order, `LOCKSTEP_SECTION_KEY` "
    "variables,\n"
    "`--set section.key=value` (a value is read as TOML, else as a string). Relative paths start at the file that sets "
    "them;\n"
    "those of variables and `--set` at the current directory. Of a pair of which exactly one may be set, a later layer "
    "that\n"
    "sets one drops the other. `lockstep config init` writes a starter file, `config show` prints every value in force "
    "with\n"
    "its origin, `config check` validates, `config schema` prints a JSON Schema.\n\n"
    "A key that the chosen model, optimizer or format does not use is legal.\n\n"
    "**Reach**: *bits*: can change a bit of a weight, and must be equal on all ranks and on resume; *paths*: never "
    "compared,\n"
    "the contents of the files are; *shared*: never changes a bit, rank 0's value holds for all; *rank*: never changes "
    "a bit,\n"
    "each rank follows its own.\n\n"
    "Whole numbers without an upper bound here end at 1,073,741,824 (train.steps at 1e15).\n";

/// Upper bounds from here on only keep sizes inside 64 bits; they are stated once.
constexpr double kPlenty = 1 << 30;

std::string_view effect_text(KeyEffect effect) {
    switch (effect) {
        case KeyEffect::kBits:
            return "bits";
        case KeyEffect::kPath:
            return "paths";
        case KeyEffect::kShared:
            return "shared";
        case KeyEffect::kPerRank:
            return "rank";
    }
    return "";
}

std::string values_text(const Key& key) {
    if (!key.choices.empty()) {
        std::string list;
        for (const std::string_view choice : choices_of(key))
            list += fmt::format("{}`{}`", list.empty() ? "" : ", ", choice.empty() ? "\"\"" : choice);
        return list;
    }
    std::string text = key.field.type == KeyType::kPaths ? "table, path or list of paths" : type_text(key.field.type);
    Range shown = key.range;
    if (shown.most >= kPlenty) shown.most = std::numeric_limits<double>::infinity();
    const std::string range = range_text(shown);
    if (!range.empty()) text += ", " + range;
    return text;
}

/// What one table of an array of tables may hold.
std::string table_page(const Key& key) {
    std::string out = fmt::format("\n### [[{}]]\n\n| key | values | what it does |\n|---|---|---|\n", key.name);
    for (const TableKey& row : key.table) {
        const Key entry{.name = row.name,
                        .field = {.type = row.type, .optional = false, .get = nullptr, .set = nullptr},
                        .doc = row.doc,
                        .range = row.range,
                        .choices = row.choices};
        out += fmt::format("| `{}` | {}{} | {} |\n", row.name, values_text(entry), row.required ? ", required" : "",
                           row.doc);
    }
    return out;
}

}  // namespace

std::string config_reference() {
    std::string out(kPageHead);
    for (const Section& section : config_sections()) {
        out += fmt::format(
            "\n## {}\n\n{}\n\n| key | default | values | unit | reach | what it does |\n|---|---|---|---|---|---|\n",
            section.name.empty() ? "Top level" : fmt::format("[{}]", section.name), section.doc);
        for (const Key& key : config_keys()) {
            if (section_of(key) != section.name) continue;
            const Value standard = default_of(key);
            const bool none = std::holds_alternative<std::monostate>(standard) || key.field.type == KeyType::kPaths;
            out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", name_in_section(key),
                               none ? "none" : fmt::format("`{}`", toml_text(standard)), values_text(key), key.unit,
                               effect_text(key.effect), key.doc);
        }
        for (const Key& key : config_keys()) {
            if (section_of(key) == section.name && key.field.type == KeyType::kTables) out += table_page(key);
        }
    }
    return out;
}

}  // namespace lockstep
