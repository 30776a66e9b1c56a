// Where each activation and each gradient lives. Activations that a later pass reads are kept, with room for all local
// rows; the others are transient, needed only until their last reader, with room for one block of rows on one stream,
// so that they stay in its cache. Transient places are handed out again as soon as they are free, and serve the
// gradients of the way back, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

struct Place {
    enum class Kind {
        kInput,      // the caller's samples
        kKept,       // an activation of all rows
        kTransient,  // of one block of rows on one stream
        kGradient,   // a gradient of all rows
    } kind = Kind::kInput;
    int number = 0;
    bool operator==(const Place&) const = default;
};

/// What a layer does on the way back with the gradient of its output.
struct BackStep {
    struct Input {
        enum class How {
            kNone,   // no weights before it
            kWrite,  // the first to reach it
            kAdd,    // behind others, by way of `scratch`
            kTaken,  // it goes on living where the gradient of the output lay
        } how = How::kNone;
        Place to, scratch;
    };
    bool runs = false;  // a gradient reaches it that is of use
    Place dy;
    std::vector<Input> inputs;  // none where the layer works in place
};

struct MemoryPlan {
    std::vector<Place> outputs;  // of each layer
    std::vector<BackStep> back;  // training: of each layer
    // Elements a row of each place of a kind.
    std::vector<int64_t> kept_elements, transient_elements, gradient_elements;
};

/// Layers [0, prefix) run block by block, the others on all rows; between blocks, all ranks meet at borders
/// (LayerSpec::is_border). `training`: a way back follows.
MemoryPlan plan_memory(std::span<const LayerSpec> layers, std::size_t prefix, bool training);

}  // namespace lockstep
