// Where each activation lives. Kept ones have room for all local rows, because a later pass reads them; transient ones
// are needed only by the next layer and have room for one block of rows on one stream, so that they stay in its cache.
// Two transient regions in turn are enough, and serve the gradients of the way back, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

struct Place {
    enum class Kind { kInput, kKept, kTransient } kind = Kind::kInput;
    int number = 0;  // of the kept array; of the transient region, 0 or 1
    bool operator==(const Place&) const = default;
};

struct MemoryPlan {
    std::vector<Place> outputs;            // of each layer; a layer's input is the output of the layer before
    std::vector<int64_t> kept_elements;    // of each kept array: elements a row
    int64_t transient_elements = 0;        // of each of the two regions: elements a row
    int64_t suffix_gradient_elements = 0;  // the largest gradient of the suffix: elements a row
    Place input_of(std::size_t layer) const { return layer == 0 ? Place{} : outputs[layer - 1]; }
};

/// Layers [0, prefix) run block by block, the others on all rows. `training`: a way back follows. The first layer must
/// not be one that works in place.
MemoryPlan plan_memory(std::span<const LayerSpec> layers, std::size_t prefix, bool training);

}  // namespace lockstep
