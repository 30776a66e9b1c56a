// [[model.layers]] as a list: which layers there are, under which names, and who reads whom. All that can be said of it
// without a shape, so that a config is checked before there are data.
#pragma once

#include <string>
#include <vector>

#include "nn/layer_table.hpp"

namespace lockstep {

inline constexpr int kSamples = -1;  // in ListedLayer::inputs: not a layer

struct ListedLayer {
    LayerTable table;
    std::string name;
    std::vector<int> inputs;  // places in the list, or kSamples
};

/// The layers in their order; `layers` must outlive them. Throws kUsage with a line for each layer that is at fault,
/// naming its place in the file: a kind that there is not, a key that the kind does not have or lacks, a name that
/// holds more than letters, digits, ".", "_" and "-" or that another layer has, a `from` that names no layer before it,
/// and values that no shape would make right; and for outputs that nothing reads.
std::vector<ListedLayer> list_layers(const std::vector<ConfigTable>& layers);

}  // namespace lockstep
