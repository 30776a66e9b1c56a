#include "nn/graph.hpp"

#include <utility>

namespace lockstep {
namespace {

constexpr int64_t kLeafAlignment = 16;  // floats: each layer's part of a leaf starts on a 64-byte border

}  // namespace

Graph::Graph(Model model_, Backend& backend_)
    : backend(backend_),
      model(std::move(model_)),
      training_memory(plan_memory(model.layers, model.prefix, true)),
      evaluation_memory(plan_memory(model.layers, model.prefix, false)) {
    for (const LayerSpec& layer : model.layers) layers.push_back(make_layer(layer, backend));
    for (std::size_t i = 0; i < model.prefix; ++i) {
        leaf_offsets.push_back(leaf_elements);
        leaf_elements += (layers[i]->leaf_elements() + kLeafAlignment - 1) / kLeafAlignment * kLeafAlignment;
    }
}

}  // namespace lockstep
