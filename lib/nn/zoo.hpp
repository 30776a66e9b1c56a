// The models by name, as data: a list of layers with their shapes, and the table of their parameters. No device needed.
#pragma once

#include <string>
#include <vector>

#include "nn/layer.hpp"
#include "nn/loss.hpp"
#include "nn/model_spec.hpp"
#include "nn/parameters.hpp"

namespace lockstep {

struct Model {
    std::vector<LayerSpec> layers;
    ParameterTable parameters;
    LossSpec loss;
    std::size_t prefix = 0;  // layers up to the last convolution, pooling or normalisation: these run shard by shard
};

/// Throws kUsage for an unknown name, for a model that the shapes do not allow (naming the layer), and for values of
/// the spec that make no network.
Model build_model(const ModelSpec& spec);

/// Settles what neighbouring layers do for each other (LayerSpec) and where the prefix ends. Throws kUsage for a layer
/// that nothing reads, and for one with too many inputs; kRuntime for layers that are in no topological order.
void link_layers(Model& model);

}  // namespace lockstep
