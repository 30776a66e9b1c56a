#include "config/toml_source.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>

namespace lockstep {
namespace {

TomlTable convert(const toml::table& table);

TomlValue convert(const toml::node& node) {
    if (const auto* table = node.as_table()) {
        const toml::source_position at = node.source().begin;
        return {convert(*table), at.line, at.column};
    }
    if (const auto* array = node.as_array()) {
        TomlArray items;
        for (const toml::node& item : *array) items.push_back(convert(item));
        return {std::move(items)};
    }
    if (const auto* value = node.as_boolean()) return {value->get()};
    if (const auto* value = node.as_integer()) return {value->get()};
    if (const auto* value = node.as_floating_point()) return {value->get()};
    if (const auto* value = node.as_string()) return {value->get()};
    return {TomlDate{}};
}

TomlTable convert(const toml::table& table) {
    TomlTable entries;
    for (const auto& [key, node] : table) {
        const toml::source_position at = key.source().begin;
        entries.push_back({std::string(key.str()), convert(node), at.line, at.column});
    }
    // The library keeps tables sorted by name; faults should come in the order of the file.
    std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
        return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    return entries;
}

}  // namespace

TomlDocument parse_toml(std::string_view text, const std::string& source) {
    try {
        return {convert(static_cast<const toml::table&>(toml::parse(text))), ""};
    } catch (const toml::parse_error& error) {
        const toml::source_position at = error.source().begin;
        return {{}, fmt::format("{}:{}:{}: not TOML: {}", source, at.line, at.column, one_line(error.description()))};
    }
}

std::optional<TomlValue> parse_toml_value(std::string_view text) {
    const TomlDocument document = parse_toml(fmt::format("value = {}", text), "");
    // More than one entry: the text went on after the value's line.
    if (!document.fault.empty() || document.table.size() != 1) return std::nullopt;
    return document.table.front().value;
}

std::string describe(const TomlValue& value) {
    constexpr size_t kShort = 80;
    struct Describer {
        std::string operator()(bool v) const { return toml_text(v); }
        std::string operator()(int64_t v) const { return toml_text(v); }
        std::string operator()(double v) const { return toml_text(v); }
        std::string operator()(const std::string& v) const {
            return v.size() <= kShort ? in_quotes(v) : "a long string";
        }
        std::string operator()(const TomlDate&) const { return "a date or time"; }
        std::string operator()(const TomlTable&) const { return "a table"; }
        std::string operator()(const TomlArray& items) const {
            std::string text = "[";
            for (const TomlValue& item : items) text += (text.size() > 1 ? ", " : "") + describe(item);
            return text.size() < kShort ? text + "]" : fmt::format("a list of {}", items.size());
        }
    };
    return std::visit(Describer{}, value.data);
}

}  // namespace lockstep
