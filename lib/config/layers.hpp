// The sources of a config as layers, later wins: each file, the LOCKSTEP_ variables together, the --set arguments
// together.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/toml_source.hpp"

namespace lockstep {

/// A dotted name and what it is set to, by whom.
struct Setting {
    std::string name;  // "batch.size", "data.train.images", or a whole section
    TomlValue value;
    std::string origin;
    std::string fault = {};  // a whole line; name and value then mean nothing (unknown key, unreadable file)
    std::string file = {};   // that the positions inside the value are of; empty: of none
};

struct ConfigLayer {
    std::string directory;  // that relative paths start at
    std::vector<Setting> settings;
};

struct Layers {
    std::vector<ConfigLayer> layers;
    std::vector<std::string> warnings;
    bool complete = true;  // every file could be read and parsed
};

Layers collect_layers(const ConfigSources& sources);

}  // namespace lockstep
