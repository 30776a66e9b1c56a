// What `verify` found, for people and for programs.
#pragma once

#include <string>

#include "train/verification.hpp"

namespace lockstep {

/// The table of the worlds, then what was found.
std::string verification_text(const Verification& verification);
/// One JSON document.
std::string verification_json(const Verification& verification);
/// "step 7: world 4 differs from world 1 in fc1.weight[0, 3]"; where nothing differs: "".
std::string departure_line(const Verification& verification);

}  // namespace lockstep
