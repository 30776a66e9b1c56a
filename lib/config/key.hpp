// One row of the key table: everything that the program knows about a config key. Parsing, validation, printing, the
// JSON Schema, the starter file and the reference page read these rows and know no key by themselves.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/key_table.hpp"
#include "config/value.hpp"

namespace lockstep {

/// How a row reaches its field of Config.
struct Field {
    KeyType type;
    bool optional;  // may be unset
    Value (*get)(const Config&);
    void (*set)(Config&, const Value&);
};

/// Of the number, or of each entry of a list.
struct Range {
    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();
    bool above = false;  // least itself is out
    bool below = false;  // most itself is out
};

/// One legal key of the tables of an array of tables, such as "kernel" of [[model.layers]]. Where a list is wanted, its
/// only entry may stand alone.
struct TableKey {
    std::string_view name;
    KeyType type;  // all but kPaths and kTables; numbers must be finite in fp32, too
    std::string_view doc;
    std::string_view choices = {};
    Range range = {};
    bool required = false;
};

struct Key {
    std::string_view name;  // "batch.size"
    Field field;
    std::string_view doc;  // one line
    std::string_view unit = {};
    Range range = {};
    std::string_view choices = {};  // "batch|epoch": a string that must be one of these
    size_t least_entries = 0;       // of a list; an empty one is legal where the default is empty
    size_t most_entries = std::numeric_limits<size_t>::max();
    KeyEffect effect = KeyEffect::kBits;
    bool path = false;  // a string that names a file or folder: made absolute
    bool fp32 = false;  // numbers that a kernel gets in fp32: there, too, they must be finite and in range
    std::span<const TableKey> table = {};  // of an array of tables: what each table may hold
};

/// Two keys of which exactly one may be set: a later layer that sets one drops the other. 0 counts as not set.
struct KeyPair {
    std::string_view first;
    std::string_view second;
};

/// One [section] of the file, in the order of the table.
struct Section {
    std::string_view name;  // "" for keys at the top
    std::string_view doc;
};

std::span<const Key> config_keys();
std::span<const KeyPair> config_pairs();
std::span<const Section> config_sections();

/// All names that a setting may have: the keys, and "data.train.images" and the like, which may be set one by one.
std::vector<std::string> settable_names();

const Key* find_key(std::string_view name);
const Key& key_of(std::string_view name);          // that is known to exist
std::string_view section_of(const Key& key);       // "batch"
std::string_view name_in_section(const Key& key);  // "size"
Value default_of(const Key& key);
std::vector<std::string_view> choices_of(const Key& key);
bool is_set(const Value& value);                          // for members of a pair
const Key* partner_of(const Key& key);                    // in a pair, or nullptr
std::string environment_name(std::string_view key_name);  // "batch_norm.scope" -> "LOCKSTEP_BATCH_NORM_SCOPE"

/// Whether the key is in force: not the unset member of a pair.
bool in_force(const Key& key, const Config& config);

namespace detail {

template <auto... Path>
auto& follow(auto& config) {
    return (config.*....*Path);
}

template <class T>
struct KeyTypeOf;
template <>
struct KeyTypeOf<bool> : std::integral_constant<KeyType, KeyType::kBool> {};
template <>
struct KeyTypeOf<int64_t> : std::integral_constant<KeyType, KeyType::kInteger> {};
template <>
struct KeyTypeOf<std::optional<int64_t>> : std::integral_constant<KeyType, KeyType::kInteger> {};
template <>
struct KeyTypeOf<double> : std::integral_constant<KeyType, KeyType::kNumber> {};
template <>
struct KeyTypeOf<std::string> : std::integral_constant<KeyType, KeyType::kString> {};
template <>
struct KeyTypeOf<std::vector<int64_t>> : std::integral_constant<KeyType, KeyType::kIntegers> {};
template <>
struct KeyTypeOf<std::vector<double>> : std::integral_constant<KeyType, KeyType::kNumbers> {};
template <>
struct KeyTypeOf<DataPaths> : std::integral_constant<KeyType, KeyType::kPaths> {};
template <>
struct KeyTypeOf<std::vector<std::string>> : std::integral_constant<KeyType, KeyType::kStrings> {};
template <>
struct KeyTypeOf<std::vector<ConfigTable>> : std::integral_constant<KeyType, KeyType::kTables> {};

}  // namespace detail

/// field<&Config::batch, &Config::BatchSettings::size>()
template <auto... Path>
constexpr Field field() {
    using T = std::remove_cvref_t<decltype(detail::follow<Path...>(std::declval<Config&>()))>;
    constexpr bool optional = std::is_same_v<T, std::optional<int64_t>>;
    return {detail::KeyTypeOf<T>::value, optional,
            [](const Config& config) -> Value {
                const T& member = detail::follow<Path...>(config);
                if constexpr (optional) {
                    return member ? Value(*member) : Value();
                } else {
                    return Value(member);
                }
            },
            [](Config& config, const Value& value) {
                T& member = detail::follow<Path...>(config);
                if constexpr (optional) {
                    member.reset();
                    if (const auto* set = std::get_if<int64_t>(&value)) member = *set;
                } else {
                    member = std::get<T>(value);
                }
            }};
}

}  // namespace lockstep
