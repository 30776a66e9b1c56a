// The choice of an instruction set, apart from the machine it is made on: so that a test can make it for others.
#pragma once

#include <span>

#include "backend/cpu/cpu_backend.hpp"

namespace lockstep {

/// What a backend runs on when `asked` of a machine that has `available`, best first. Throws kUsage where it lacks it,
/// and for kAuto where it has nothing but scalar code: that is slow enough to be somebody's decision.
Isa choose_isa(Isa asked, std::span<const Isa> available);

}  // namespace lockstep
