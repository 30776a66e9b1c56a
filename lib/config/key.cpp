#include "config/key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.hpp"

namespace lockstep {

std::vector<std::string> settable_names() {
    std::vector<std::string> names;
    for (const Key& key : config_keys()) {
        names.emplace_back(key.name);
        if (key.field.type != KeyType::kPaths) continue;
        for (const char* part : {"images", "labels"}) names.push_back(fmt::format("{}.{}", key.name, part));
    }
    return names;
}

const Key* find_key(std::string_view name) {
    for (const Key& key : config_keys()) {
        if (key.name == name) return &key;
    }
    return nullptr;
}

const Key& key_of(std::string_view name) {
    if (const Key* key = find_key(name)) return *key;
    fail(ErrorKind::kRuntime, "config key {} is not in the table", name);
}

std::string_view section_of(const Key& key) {
    const size_t dot = key.name.find('.');
    return dot == std::string_view::npos ? std::string_view() : key.name.substr(0, dot);
}

std::string_view name_in_section(const Key& key) {
    const size_t dot = key.name.find('.');
    return dot == std::string_view::npos ? key.name : key.name.substr(dot + 1);
}

Value default_of(const Key& key) {
    return key.field.get(Config{});
}

std::vector<std::string_view> choices_of(const Key& key) {
    std::vector<std::string_view> parts;
    for (std::string_view list = key.choices; !list.empty();) {
        const size_t bar = std::min(list.find('|'), list.size());
        parts.push_back(list.substr(0, bar));
        list.remove_prefix(std::min(bar + 1, list.size()));
    }
    return parts;
}

bool is_set(const Value& value) {
    const auto* count = std::get_if<int64_t>(&value);
    return count != nullptr && *count != 0;
}

const Key* partner_of(const Key& key) {
    for (const KeyPair& pair : config_pairs()) {
        if (key.name == pair.first) return &key_of(pair.second);
        if (key.name == pair.second) return &key_of(pair.first);
    }
    return nullptr;
}

std::string environment_name(std::string_view key_name) {
    std::string name = "LOCKSTEP_";
    for (const char c : key_name)
        name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

bool in_force(const Key& key, const Config& config) {
    const Value value = key.field.get(config);
    if (key.field.optional) return is_set(value);
    const Key* partner = partner_of(key);
    return partner == nullptr || is_set(value) || !is_set(partner->field.get(config));
}

}  // namespace lockstep
