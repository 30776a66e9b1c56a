// Models that a config describes layer by layer, as an array of tables [[model.layers]]: each layer lies on the one
// before it, or on those that its `from` names.
#pragma once

#include "nn/builder.hpp"

namespace lockstep {

/// Appends the layers of spec.layers. Throws kUsage, naming file and line, for a key that the kind of a layer does not
/// have or lacks, an unknown name, a name twice, an output that nothing reads, shapes that do not fit, and a last layer
/// whose outputs are not the loss's.
void build_custom(Builder& builder);

}  // namespace lockstep
