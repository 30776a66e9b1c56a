// What a backend needs of a DropoutKey to decide about an element, and nothing else.
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "core/philox.hpp"

namespace lockstep {

/// A DropoutKey made ready: an element is kept where its random bits are >= threshold.
struct DropoutMask {
    PhiloxKey key;
    uint32_t threshold;  // floor(p * 2^32)
    float scale;         // 1 / (1 - p), computed in fp64 and rounded once
};

/// Throws kUsage for a probability outside [0, 1).
DropoutMask dropout_mask(const DropoutKey& key);

}  // namespace lockstep
