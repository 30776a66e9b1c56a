// The value of one config key, apart from where it stands, and its two spellings: TOML and JSON. Numbers are the
// shortest decimals that read back to the same fp64, so that printing and loading loses nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// monostate: not set (train.epochs when steps are given).
using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                           std::vector<double>, DataPaths, std::vector<std::string>, std::vector<ConfigTable>>;

/// In the order of Value's alternatives, after monostate.
enum class KeyType { kBool, kInteger, kNumber, kString, kIntegers, kNumbers, kPaths, kStrings, kTables };

/// As in a TOML file; "unset" for monostate (which no file may hold).
std::string toml_text(const Value& value);
/// As in JSON; "null" for monostate.
std::string json_text(const Value& value);

/// The entries of one table: "kind = \"conv\"", … in the order of the file.
std::vector<std::string> toml_entries(const ConfigTable& table);

/// A quoted string that is both TOML and JSON: control characters escaped.
std::string in_quotes(std::string_view text);

/// The text with control characters escaped, for messages and comments that must stay on their line.
std::string one_line(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace lockstep
