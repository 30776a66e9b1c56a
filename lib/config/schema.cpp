// The key table as a JSON Schema, for editors that check and complete TOML.
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/key.hpp"
#include "config/read_value.hpp"

namespace lockstep {
namespace {

using json = nlohmann::ordered_json;

json scalar(const Key& key, const char* type) {
    json schema{{"type", type}};
    const auto limit = [&](double value) {
        return value == std::floor(value) && std::abs(value) < 1e15 ? json(static_cast<int64_t>(value)) : json(value);
    };
    if (std::isfinite(key.range.least))
        schema[key.range.above ? "exclusiveMinimum" : "minimum"] = limit(key.range.least);
    if (std::isfinite(key.range.most)) schema[key.range.below ? "exclusiveMaximum" : "maximum"] = limit(key.range.most);
    return schema;
}

json list(const Key& key, const char* type) {
    json schema{{"type", "array"}, {"items", scalar(key, type)}};
    const bool may_be_empty = key.field.get == nullptr || json_text(default_of(key)) == "[]";
    if (key.least_entries > 0 && !may_be_empty) schema["minItems"] = key.least_entries;
    if (key.most_entries < std::numeric_limits<size_t>::max()) schema["maxItems"] = key.most_entries;
    return schema;
}

json paths() {
    const json path{{"type", "string"}};
    const json table{
        {"type", "object"}, {"properties", {{"images", path}, {"labels", path}}}, {"additionalProperties", false}};
    return {{"oneOf", {table, path, {{"type", "array"}, {"items", path}}}}};
}

json type_schema(const Key& key);

/// One table of an array of tables. What reads a list also takes its only entry alone.
json table_schema(std::span<const TableKey> rows) {
    json properties = json::object(), required = json::array();
    for (const TableKey& row : rows) {
        const Key key{.name = row.name,
                      .field = {.type = row.type, .optional = false, .get = nullptr, .set = nullptr},
                      .doc = row.doc,
                      .range = row.range,
                      .choices = row.choices};
        json schema = type_schema(key);
        if (schema["type"] == "array") schema = {{"oneOf", {schema["items"], schema}}};
        schema["description"] = row.doc;
        properties[std::string(row.name)] = schema;
        if (row.required) required.push_back(row.name);
    }
    return {{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}};
}

json type_schema(const Key& key) {
    switch (key.field.type) {
        case KeyType::kBool:
            return {{"type", "boolean"}};
        case KeyType::kInteger:
            return scalar(key, "integer");
        case KeyType::kNumber:
            return scalar(key, "number");
        case KeyType::kIntegers:
            return list(key, "integer");
        case KeyType::kNumbers:
            return list(key, "number");
        case KeyType::kPaths:
            return paths();
        case KeyType::kStrings:
            return list(key, "string");
        case KeyType::kTables:
            return {{"type", "array"}, {"items", table_schema(key.table)}};
        case KeyType::kString:
            break;
    }
    json schema{{"type", "string"}};
    if (!key.choices.empty()) schema["enum"] = choices_of(key);
    return schema;
}

std::string description(const Key& key) {
    std::string text(key.doc);
    if (!key.unit.empty()) text += " (" + std::string(key.unit) + ")";
    return text;
}

json key_schema(const Key& key) {
    json schema = type_schema(key);
    schema["description"] = description(key);
    const Value standard = default_of(key);
    if (!std::holds_alternative<std::monostate>(standard)) schema["default"] = json::parse(json_text(standard));
    return schema;
}

}  // namespace

std::string config_schema() {
    json schema{
        {"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Lockstep config"}, {"type", "object"}};
    json& properties = schema["properties"] = json::object();
    for (const Section& section : config_sections()) {
        if (section.name.empty()) continue;
        properties[std::string(section.name)] = {{"type", "object"},
                                                 {"description", section.doc},
                                                 {"properties", json::object()},
                                                 {"additionalProperties", false}};
    }
    for (const Key& key : config_keys()) {
        const std::string section(section_of(key));
        json& place = section.empty() ? properties : properties[section]["properties"];
        place[std::string(name_in_section(key))] = key_schema(key);
    }
    // Neither may be right (another layer sets one); 0 stands for "not set" where the keys have a default.
    for (const KeyPair& pair : config_pairs()) {
        const Key& first = key_of(pair.first);
        if (!first.field.optional) continue;
        properties[std::string(section_of(first))]["not"]["required"] = {name_in_section(first),
                                                                         name_in_section(key_of(pair.second))};
    }
    schema["additionalProperties"] = false;
    return schema.dump(2) + "\n";
}

}  // namespace lockstep
