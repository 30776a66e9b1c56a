// The way back from config_to_json, through the same rows and checks as a file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/key.hpp"
#include "config/read_value.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

using json = nlohmann::ordered_json;

[[noreturn]] void damaged(const std::string& what) {
    fail(ErrorKind::kData, "stored config: {}", what);
}

// Ordered: the entries of a table come back in the order in which they were written.
TomlValue convert(const json& node) {
    switch (node.type()) {
        case json::value_t::boolean:
            return {node.get<bool>()};
        case json::value_t::number_integer:
        case json::value_t::number_unsigned:
            return {node.get<int64_t>()};
        case json::value_t::number_float:
            return {node.get<double>()};
        case json::value_t::string:
            return {node.get<std::string>()};
        case json::value_t::array: {
            TomlArray items;
            for (const json& item : node) items.push_back(convert(item));
            return {std::move(items)};
        }
        case json::value_t::object: {
            TomlTable entries;
            for (const auto& [name, value] : node.items()) entries.push_back({name, convert(value)});
            return {std::move(entries)};
        }
        default:
            damaged("a value is null");
    }
}

Value read(const Key& key, const json& node) {
    if (key.field.type == KeyType::kPaths && node.is_object()) {
        DataPaths paths;
        for (const auto& [name, path] : node.items()) {
            if (!path.is_string() || (name != "images" && name != "labels"))
                damaged(fmt::format("{}.{}", key.name, name));
            (name == "images" ? paths.images : paths.labels) = path.get<std::string>();
        }
        return paths;
    }
    ReadValue read = read_value(key, convert(node));
    if (!read.fault.empty()) damaged(read.fault);
    return std::move(read.value);
}

void apply(Config& config, const std::string& name, const json& node) {
    const Key* key = find_key(name);
    if (key == nullptr) damaged(fmt::format("{}: unknown key; written by another version?", one_line(name)));
    key->field.set(config, read(*key, node));
}

}  // namespace

Config config_from_json(const std::string& text) {
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object()) damaged("not a JSON object");
    Config config;
    // An unset member of a pair is absent, and then its default does not hold either.
    for (const KeyPair& pair : config_pairs()) {
        for (const std::string_view member : {pair.first, pair.second}) {
            const Key& key = key_of(member);
            key.field.set(config, key.field.optional ? Value() : Value(int64_t{0}));
        }
    }
    for (const auto& [name, node] : document.items()) {
        if (!node.is_object()) {
            apply(config, name, node);
            continue;
        }
        for (const auto& [key, value] : node.items()) apply(config, name + "." + key, value);
    }
    return config;
}

}  // namespace lockstep
