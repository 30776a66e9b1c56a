// The environment beside the config: what launchers, libraries and shells leave there. Reading it is left to this
// folder alone, so that nothing else can come to depend on it unseen.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Variables by name. A map, so that what is decided from it can be tested with made-up ones.
using Environment = std::map<std::string, std::string>;

/// The variables of this process whose names begin with one of the prefixes.
Environment environment_with(std::span<const std::string_view> prefixes);

}  // namespace lockstep
