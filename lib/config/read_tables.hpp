// From TOML to the tables of an array of tables, such as [[model.layers]]: each entry is read against the row of its
// name, and all faults of all tables are found at once, each with its own line.
#pragma once

#include <string>
#include <vector>

#include "config/key.hpp"
#include "config/toml_source.hpp"

namespace lockstep {

struct ReadTables {
    std::vector<ConfigTable> tables;
    std::vector<std::string> faults;  // whole lines; none: the value is legal
};

/// `file` names the text that the positions are of; without one (a variable, --set, JSON) everything stands at
/// `origin`.
ReadTables read_tables(const Key& key, const TomlValue& value, const std::string& origin, const std::string& file);

}  // namespace lockstep
