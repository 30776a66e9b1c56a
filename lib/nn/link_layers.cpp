// What neighbouring layers do for each other: a relu that is applied while its input is written, one that is undone
// where its gradient is small or read anyway; and which layers run shard by shard.
#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "nn/zoo.hpp"

namespace lockstep {
namespace {

/// Of each layer: how many read its output. The loss reads the last one.
std::vector<int> count_readers(const std::vector<LayerSpec>& layers) {
    std::vector<int> readers(layers.size(), 0);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const LayerSpec& layer = layers[i];
        if (layer.inputs.empty() || layer.inputs.size() > kMostInputs) {
            fail(ErrorKind::kUsage, "layer {}: has {} inputs, and can have 1 to {}", layer.name, layer.inputs.size(),
                 kMostInputs);
        }
        for (const int input : layer.inputs) {
            if (input < -1 || input >= static_cast<int>(i)) {
                fail(ErrorKind::kRuntime, "layer {}: number {} reads number {}, which does not come before it",
                     layer.name, i, input);
            }
            if (input >= 0) ++readers[static_cast<std::size_t>(input)];
        }
    }
    if (!layers.empty()) ++readers.back();
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (readers[i] == 0) fail(ErrorKind::kUsage, "layer {}: nothing reads its output", layers[i].name);
    }
    return readers;
}

SampleShape input_shape(const std::vector<LayerSpec>& layers, int input) {
    return input < 0 ? layers.front().in : layers[static_cast<std::size_t>(input)].out;
}

/// Inputs that are joined must be alike.
void check_shapes(const LayerSpec& layer, const std::vector<LayerSpec>& layers) {
    const bool concat = layer.kind == LayerKind::kConcat;
    if (!concat && layer.kind != LayerKind::kAdd) return;
    if (!concat && layer.inputs.size() < 2) fail(ErrorKind::kUsage, "layer {}: a sum needs two inputs", layer.name);
    const SampleShape first = input_shape(layers, layer.inputs[0]);
    for (const int input : layer.inputs) {
        const SampleShape other = input_shape(layers, input);
        if (other.height == first.height && other.width == first.width && (concat || other.channels == first.channels))
            continue;
        fail(ErrorKind::kUsage, "layer {}: its inputs are {}x{}x{} and {}x{}x{}, which cannot be {}", layer.name,
             first.height, first.width, first.channels, other.height, other.width, other.channels,
             concat ? "set beside each other" : "added");
    }
}

/// What works on the rows of a shard, or on maps whose memory matters.
bool runs_by_block(LayerKind kind) {
    return kind == LayerKind::kConv || kind == LayerKind::kPool || kind == LayerKind::kBatchNorm ||
           kind == LayerKind::kLrn;
}

/// `before` is read by this relu alone.
void link_relu(LayerSpec& relu, LayerSpec& before) {
    if (before.kind != LayerKind::kConv && before.kind != LayerKind::kDense && before.kind != LayerKind::kBatchNorm)
        return;
    before.relu_inside = relu.forward_done = true;
    if (before.kind == LayerKind::kBatchNorm) before.masks_relu = relu.backward_done = true;
}

/// A maximum undoes the relu that only it reads, at pooled size; then the batch norm before need not.
void link_pool(LayerSpec& pool, LayerSpec& relu, std::vector<LayerSpec>& layers) {
    pool.masks_relu = relu.backward_done = true;
    if (relu.forward_done) layers[static_cast<std::size_t>(relu.inputs[0])].masks_relu = false;
}

}  // namespace

void link_layers(Model& model) {
    std::vector<LayerSpec>& layers = model.layers;
    const std::vector<int> readers = count_readers(layers);
    int64_t weights_end = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        LayerSpec& layer = layers[i];
        layer.data_gradient = std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](int input) {
            return input >= 0 && layers[static_cast<std::size_t>(input)].reaches_weights();
        });
        check_shapes(layer, layers);
        layer.input_channels.clear();
        for (const int from : layer.inputs) layer.input_channels.push_back(input_shape(layers, from).channels);
        if (runs_by_block(layer.kind)) model.prefix = i + 1;
        if (layer.has_weights()) {
            // The last layers' gradients leave first, from the end of the flat array.
            if (layer.weight < weights_end) {
                fail(ErrorKind::kRuntime, "layer {}: its tensors lie before those of an earlier layer", layer.name);
            }
            weights_end = layer.weight + 1;
        }
        const int input = layer.inputs[0];
        if (input < 0 || readers[static_cast<std::size_t>(input)] > 1) continue;
        LayerSpec& before = layers[static_cast<std::size_t>(input)];
        const bool relu = layer.kind == LayerKind::kRelu;
        if (relu || layer.kind == LayerKind::kDropout) {
            layer.reuses_input = before.kind != LayerKind::kSigmoid;  // which needs its output as it was
        }
        if (relu && layer.reuses_input) link_relu(layer, before);
        const bool maximum = layer.kind == LayerKind::kPool && layer.pool.kind == PoolKind::kMax;
        if (maximum && before.kind == LayerKind::kRelu) link_pool(layer, before, layers);
    }
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i].by_block = i < model.prefix;
}

}  // namespace lockstep
