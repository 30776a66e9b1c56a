// What must hold between keys once all layers are in: exactly one of a pair, data for the format, and nothing whose
// feature does not exist yet. And what is legal but hardly meant.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// One line per fault, each with the origin of the key where it was set. Nothing is said about `broken` keys, whose
/// value was refused already.
std::vector<std::string> check_rules(const Config& config, const Origins& origins, const std::set<std::string>& broken);

/// One line for each key that was set to something that has no effect, though who sets it surely wants one. Defaults
/// and config.resolved.toml, in which every key stands, are nobody's wish.
std::vector<std::string> warn_of_keys(const Config& config, const Origins& origins);

}  // namespace lockstep
