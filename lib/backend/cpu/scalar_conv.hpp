// Convolutions of the scalar instruction set: the reference itself, rows and output channels shared among threads.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace lockstep {

std::unique_ptr<Conv> make_scalar_conv(const ConvShape& shape, bool relu);

}  // namespace lockstep
