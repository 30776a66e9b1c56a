#include "nn/builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace lockstep {
namespace {

/// The deviation of a normal cut at two deviations is this share of the whole one's.
constexpr double kCutDeviation = 0.87962566103423978;

/// Weights of a layer, and values of a sample between two layers: kernels count them in an int.
constexpr int64_t kMost = std::numeric_limits<int>::max();

Initial initial_of(const Weights& weights, int64_t in, int64_t out) {
    const auto fan_in = static_cast<double>(in), fan_out = static_cast<double>(out);
    switch (weights.start) {
        case WeightStart::kSmall:
            return {Initial::Kind::kNormal, std::sqrt(1.0 / (3.0 * fan_in))};
        case WeightStart::kHe:
            return {Initial::Kind::kNormal, std::sqrt(2.0 / fan_in)};
        case WeightStart::kHeOut:
            return {Initial::Kind::kNormal, std::sqrt(2.0 / fan_out)};
        case WeightStart::kScaled:
            return {Initial::Kind::kTruncated, std::sqrt(1.0 / fan_in) / kCutDeviation};
        case WeightStart::kTruncatedHe:
            return {Initial::Kind::kTruncated, std::sqrt(2.0 / fan_in)};
        case WeightStart::kTruncated:
            return {Initial::Kind::kTruncated, std::sqrt(1.0 / fan_in)};
        case WeightStart::kGiven:
            return {Initial::Kind::kNormal, weights.deviation};
        case WeightStart::kGivenTruncated:
            return {Initial::Kind::kTruncated, weights.deviation};
    }
    return {};
}

}  // namespace

Builder::Builder(const ModelSpec& spec) : spec_(spec) {}

int Builder::outputs() const {
    return spec_.loss == "softmax" ? spec_.classes : 1;
}

SampleShape Builder::shape_of(int layer) const {
    return layer < 0 ? spec_.input : model_.layers[static_cast<std::size_t>(layer)].out;
}

std::string Builder::text(SampleShape shape) {
    return fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

void Builder::refuse(const std::string& layer, const std::string& why) const {
    if (!place_.empty()) fail(ErrorKind::kUsage, "{}: layer {} {}", place_, layer, why);
    fail(ErrorKind::kUsage,
         "model.name: {} does not fit samples of {}: layer {} {}; use larger samples (data.shape) or another model",
         spec_.name, text(spec_.input), layer, why);
}

void Builder::refuse_size(const std::string& layer, const std::string& why) const {
    if (!place_.empty()) refuse(layer, why);
    fail(ErrorKind::kUsage,
         "model.name: {} is too large on samples of {}: layer {} {}; use a smaller model or smaller samples",
         spec_.name, text(spec_.input), layer, why);
}

LayerSpec& Builder::append(LayerKind kind, const std::string& name) {
    const SampleShape in = shape();
    LayerSpec& layer = model_.layers.emplace_back();
    layer.kind = kind;
    layer.name = name;
    layer.inputs = {at_};
    layer.in = layer.out = in;
    at_ = last();
    return layer;
}

int Builder::done(LayerSpec& layer, SampleShape out) {
    layer.out = out;
    if (out.elements() > kMost) {
        refuse_size(layer.name, fmt::format("would have outputs of {}, which are too many", text(out)));
    }
    return at_;
}

int Builder::batch_norm(const std::string& name) {
    LayerSpec& layer = append(LayerKind::kBatchNorm, name);
    layer.norm = {.global = spec_.global_norm,
                  .epsilon = static_cast<float>(spec_.norm_epsilon),
                  .momentum = static_cast<float>(spec_.norm_momentum),
                  .one_minus_momentum = static_cast<float>(1.0 - spec_.norm_momentum),
                  .unbiased = spec_.norm_unbiased};
    ParameterTable& table = model_.parameters;
    const int64_t channels = layer.in.channels;
    layer.weight = table[table.add(name + ".weight", {channels}, {Initial::Kind::kConstant, 1.0})].offset;
    layer.bias = table[table.add(name + ".bias", {channels}, {Initial::Kind::kConstant, 0.0})].offset;
    layer.parameters = 2 * channels;
    table.add_running(name, channels);
    return at_;
}

int Builder::relu(const std::string& name) {
    append(LayerKind::kRelu, name);
    return at_;
}
int Builder::sigmoid(const std::string& name) {
    append(LayerKind::kSigmoid, name);
    return at_;
}

int Builder::lrn(const std::string& name, int radius, float bias, float alpha, float beta) {
    if (std::min(radius, shape().channels - 1) > kMostLrnRadius) {
        refuse(name, fmt::format("normalises over {} channels on each side, and can over {}", radius, kMostLrnRadius));
    }
    LayerSpec& layer = append(LayerKind::kLrn, name);
    layer.lrn = {.channels = layer.in.channels, .radius = radius, .bias = bias, .alpha = alpha, .beta = beta};
    return at_;
}

void Builder::dropout() {
    if (spec_.dropout > 0) dropout("dropout" + std::to_string(dropouts_ + 1), spec_.dropout);
}

// Layers are numbered among themselves: what is drawn does not move with other layers.
int Builder::dropout(const std::string& name, double rate) {
    LayerSpec& layer = append(LayerKind::kDropout, name);
    layer.dropout.seed = spec_.seed;
    layer.dropout.layer = dropouts_++;
    layer.dropout.probability = static_cast<float>(rate);
    return at_;
}

int Builder::dense(const std::string& name, int64_t out) {
    return dense(name, out, {.start = rules_.hidden});
}

int Builder::dense(const std::string& name, int64_t out, const Weights& weights) {
    LayerSpec& layer = append(LayerKind::kDense, name);
    const int size = outputs_of(name, out);
    parameters(layer, {size, layer.in.elements()}, layer.in.elements(), size, weights);
    return done(layer, {1, 1, size});
}

int Builder::outputs_of(const std::string& name, int64_t size) const {
    if (size < 1 || size > kMost) refuse_size(name, fmt::format("would have {} outputs, which is not possible", size));
    return static_cast<int>(size);
}

int Builder::logits(const std::string& name) {
    return dense(name, outputs(), {.start = rules_.output});
}

int Builder::add(const std::string& name, std::vector<int> inputs) {
    for (const int input : inputs) {
        if (shape_of(input) == shape_of(inputs[0])) continue;
        refuse(name,
               fmt::format("adds {} and {}, whose shapes differ", text(shape_of(inputs[0])), text(shape_of(input))));
    }
    continue_from(inputs[0]);
    append(LayerKind::kAdd, name).inputs = std::move(inputs);
    return at_;
}

int Builder::concat(const std::string& name, std::vector<int> inputs) {
    SampleShape out = shape_of(inputs[0]);
    int64_t channels = out.channels;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        const SampleShape other = shape_of(inputs[i]);
        if (other.height != out.height || other.width != out.width) {
            refuse(name, fmt::format("sets {} beside {}, whose maps are not of one size", text(shape_of(inputs[0])),
                                     text(other)));
        }
        channels += other.channels;
    }
    if (inputs.size() > kMostInputs) {
        refuse(name, fmt::format("has {} inputs, and can have {}", inputs.size(), kMostInputs));
    }
    out.channels = outputs_of(name, channels);
    continue_from(inputs[0]);
    LayerSpec& layer = append(LayerKind::kConcat, name);
    layer.inputs = std::move(inputs);
    return done(layer, out);
}

int Builder::pad_channels(const std::string& name, int before, int behind) {
    LayerSpec& layer = append(LayerKind::kPadChannels, name);
    layer.pad_before = before;
    SampleShape out = layer.in;
    out.channels = outputs_of(name, int64_t{out.channels} + before + behind);
    return done(layer, out);
}

int Builder::expand(const std::string& name, std::span<const int> columns) {
    bool changes = static_cast<int>(columns.size()) != shape().channels;
    int64_t width = 0;
    std::vector<ExpandColumn> parts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto number = static_cast<std::size_t>(columns[i]);
        const int categories = number < spec_.columns.size() ? spec_.columns[number].categories : 0;
        changes = changes || columns[i] != static_cast<int>(i) || categories > 0;
        parts.push_back({columns[i], categories});
        width += categories > 0 ? categories : 1;
    }
    if (!changes) return at_;
    LayerSpec& layer = append(LayerKind::kExpand, name);
    layer.columns = std::move(parts);
    return done(layer, {1, 1, outputs_of(name, width)});
}

void Builder::parameters(LayerSpec& layer, std::vector<int64_t> shape, int64_t in, int64_t out,
                         const Weights& weights) {
    // A dense layer behind a map keeps its columns in memory order: see parameters.hpp.
    const SampleShape flattened = layer.kind == LayerKind::kDense ? layer.in : SampleShape{};
    const int64_t rows = shape[0];
    if (in > kMost / rows) {
        refuse_size(layer.name, fmt::format("would have {} weights for each of {} outputs, and a layer can have {} in "
                                            "all",
                                            in, rows, kMost));
    }
    ParameterTable& table = model_.parameters;
    layer.weight =
        table[table.add(layer.name + ".weight", std::move(shape), initial_of(weights, in, out), flattened)].offset;
    layer.parameters = rows * in;
    if (!weights.bias) return;
    layer.bias = table[table.add(layer.name + ".bias", {rows}, {Initial::Kind::kConstant, weights.bias_value})].offset;
    layer.parameters += rows;
}

Model Builder::finish() && {
    // Buffers lie behind all parameters, and so are known only now.
    std::map<std::string, int64_t> buffers;
    for (const Parameter& tensor : model_.parameters.stored()) {
        if (buffers.emplace(tensor.name, tensor.offset).second) continue;
        fail(ErrorKind::kUsage, "model.layers: two layers have a tensor {}; give one of them another name",
             tensor.name);
    }
    for (LayerSpec& layer : model_.layers) {
        if (layer.kind == LayerKind::kBatchNorm) layer.running = buffers.at(layer.name + ".running_mean");
    }
    link_layers(model_);
    return std::move(model_);
}

int layer_size(int64_t size, const std::string& key) {
    if (size < 1 || size > kMost) {
        fail(ErrorKind::kUsage, "{}: a layer of {} outputs is not possible", key, size);
    }
    return static_cast<int>(size);
}

}  // namespace lockstep
