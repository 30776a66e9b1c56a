// A command line of another trainer, as a test writes it, imported.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explain/config_import.hpp"
#include "explain/flag_list.hpp"

namespace lockstep {

inline ImportedConfig import_line(std::string_view from, std::string_view line) {
    const std::vector<std::string> words = parts_of(line, ' ');
    return import_config(from, words);
}

}  // namespace lockstep
