// TOML text as a plain tree with positions. The only part that knows the TOML library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/value.hpp"

namespace lockstep {

struct TomlEntry;

/// A date or time, which no key of the config takes.
struct TomlDate {};

struct TomlValue {
    std::variant<bool, int64_t, double, std::string, TomlDate, std::vector<TomlValue>, std::vector<TomlEntry>> data;
    uint32_t line = 0;  // of a table's first character, from 1
    uint32_t column = 0;
};

struct TomlEntry {
    std::string name;  // one part of a dotted key
    TomlValue value;
    uint32_t line = 0;  // of the name, from 1
    uint32_t column = 0;
};

using TomlArray = std::vector<TomlValue>;
using TomlTable = std::vector<TomlEntry>;  // in the order of the text

struct TomlDocument {
    TomlTable table;
    std::string fault;  // "exp.toml:3:7: …"; empty: the text is TOML
};

/// `source` names the text in a fault.
TomlDocument parse_toml(std::string_view text, const std::string& source);

/// A single value, such as 128, "adam" or [1, 2]; nothing if the text is not exactly that.
std::optional<TomlValue> parse_toml_value(std::string_view text);

/// For messages: the value if it is short, else its kind.
std::string describe(const TomlValue& value);

}  // namespace lockstep
