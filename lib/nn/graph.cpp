#include "nn/graph.hpp"

#include <utility>

namespace lockstep {

Graph::Graph(Model model_, Backend& backend_)
    : backend(backend_),
      model(std::move(model_)),
      training_memory(plan_memory(model.layers, model.prefix, true)),
      evaluation_memory(plan_memory(model.layers, model.prefix, false)) {
    for (const LayerSpec& layer : model.layers) layers.push_back(make_layer(layer, backend));
    const auto border = static_cast<int64_t>(backend.alignment() / sizeof(float));  // of each layer's part of a leaf
    for (std::size_t i = 0; i < model.prefix; ++i) {
        leaf_offsets.push_back(leaf_elements);
        leaf_elements += (layers[i]->leaf_elements() + border - 1) / border * border;
        has_norms = has_norms || model.layers[i].kind == LayerKind::kBatchNorm;
        if (model.layers[i].is_border()) borders.push_back(i);
    }
    leaf_offsets.push_back(leaf_elements);
}

}  // namespace lockstep
