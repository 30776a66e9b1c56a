// From a TOML value to the value of a key: type, range, choices, number of entries; and the words for what is legal.
#pragma once

#include <string>

#include "config/key.hpp"
#include "config/toml_source.hpp"

namespace lockstep {

struct ReadValue {
    Value value;
    std::string fault;  // "batch.size must be at least 1, got 0"; empty: the value is legal
};

/// Whether the value is legal, not whether its feature is built. Paths stay as they are written. Of an array of tables
/// only the first fault is given, without its place: read_tables gives them all.
ReadValue read_value(const Key& key, const TomlValue& value);

/// "at least 1", "above 0 and at most 1"; empty: any number.
std::string range_text(const Range& range);

/// "a whole number", "true or false", …
std::string type_text(KeyType type);

/// "a|b|c" as "a, b, c", and "|a" as "\"\", a".
std::string join(const std::vector<std::string_view>& parts);

}  // namespace lockstep
