// Whether a convolution is one: asked by every backend before it plans.
#pragma once

#include "backend/backend.hpp"

namespace lockstep {

/// Throws kUsage for a shape that has no output position, or channels that the groups do not divide.
void check_conv_shape(const ConvShape& shape);

}  // namespace lockstep
