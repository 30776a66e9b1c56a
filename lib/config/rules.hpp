// What must hold between keys once all layers are in: exactly one of a pair, data for the format, and nothing whose
// feature does not exist yet.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// One line per fault, each with the origin of the key where it was set. Nothing is said about `broken` keys, whose
/// value was refused already.
std::vector<std::string> check_rules(const Config& config, const Origins& origins, const std::set<std::string>& broken);

}  // namespace lockstep
