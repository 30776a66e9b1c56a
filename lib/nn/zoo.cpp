#include "nn/zoo.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace lockstep {
namespace {

/// Appends layers to a model, each on top of the one before.
class Builder {
  public:
    explicit Builder(const ModelSpec& spec) : spec_(spec), shape_(spec.input) {}

    /// "Same" convolution of stride 1 with an odd square kernel: the map keeps its height and width.
    void conv_same(const std::string& name, int channels, int kernel) {
        LayerSpec& layer = append(LayerKind::kConv, name);
        layer.conv.in = shape_;
        layer.conv.out_channels = channels;
        layer.conv.kernel_h = layer.conv.kernel_w = kernel;
        layer.conv.pad_top = layer.conv.pad_bottom = layer.conv.pad_left = layer.conv.pad_right = kernel / 2;
        shape_ = layer.out = layer.conv.out();
        parameters(layer, {channels, layer.in.channels, kernel, kernel}, int64_t{layer.in.channels} * kernel * kernel);
    }
    void max_pool(const std::string& name, int kernel) {
        if (shape_.height < kernel || shape_.width < kernel) {
            fail(ErrorKind::kUsage,
                 "model.name: {} does not fit samples of {}: layer {} pools {}x{} and gets {}; use larger samples "
                 "(data.shape) "
                 "or another model",
                 spec_.name, text(spec_.input), name, kernel, kernel, text(shape_));
        }
        LayerSpec& layer = append(LayerKind::kPool, name);
        layer.pool = {.kind = PoolKind::kMax,
                      .in = shape_,
                      .kernel_h = kernel,
                      .kernel_w = kernel,
                      .stride_h = kernel,
                      .stride_w = kernel};
        shape_ = layer.out = layer.pool.out();
    }
    void relu(const std::string& name) { append(LayerKind::kRelu, name); }
    /// Nothing where nothing is dropped. Layers are numbered among themselves: what is drawn does not move with other
    /// layers.
    void dropout() {
        if (spec_.dropout == 0) return;
        LayerSpec& layer = append(LayerKind::kDropout, "dropout" + std::to_string(dropouts_ + 1));
        layer.dropout.seed = spec_.seed;
        layer.dropout.layer = dropouts_++;
        layer.dropout.probability = static_cast<float>(spec_.dropout);
    }
    void dense(const std::string& name, int out) {
        LayerSpec& layer = append(LayerKind::kDense, name);
        shape_ = layer.out = {1, 1, out};
        parameters(layer, {out, layer.in.elements()}, layer.in.elements());
    }

    Model finish() {
        link_layers(model_);
        return std::move(model_);
    }

  private:
    static std::string text(SampleShape shape) {
        return fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
    }

    LayerSpec& append(LayerKind kind, const std::string& name) {
        LayerSpec& layer = model_.layers.emplace_back();
        layer.kind = kind;
        layer.name = name;
        layer.inputs = {static_cast<int>(model_.layers.size()) - 2};
        layer.in = layer.out = shape_;
        return layer;
    }
    /// Weights normal with variance 1 / (3 fan-in), that of PyTorch's default; bias 0. With He's 2 / fan-in the relus
    /// of lenet die within the first steps at the usual rate of 0.05 with momentum 0.9.
    void parameters(LayerSpec& layer, std::vector<int64_t> shape, int64_t fan_in) {
        const double deviation = std::sqrt(1.0 / (3.0 * static_cast<double>(fan_in)));
        const SampleShape flattened = layer.kind == LayerKind::kDense ? layer.in : SampleShape{};
        const int64_t out = shape[0];
        ParameterTable& table = model_.parameters;
        const Initial normal{Initial::Kind::kNormal, deviation};
        layer.weight = table[table.add(layer.name + ".weight", std::move(shape), normal, flattened)].offset;
        layer.bias = table[table.add(layer.name + ".bias", {out}, {Initial::Kind::kConstant, 0.0})].offset;
        layer.parameters = out * (fan_in + 1);
    }

    const ModelSpec& spec_;
    Model model_;
    SampleShape shape_;  // of the output so far
    uint64_t dropouts_ = 0;
};

int layer_size(int64_t size, const char* key) {
    if (size < 1 || size > std::numeric_limits<int>::max()) {
        fail(ErrorKind::kUsage, "{}: a layer of {} outputs is not possible", key, size);
    }
    return static_cast<int>(size);
}

/// fc1 … fcN, a relu (and dropout) after each hidden one.
void build_mlp(const ModelSpec& spec, Builder& builder) {
    int number = 0;
    for (const int64_t size : spec.hidden) {
        const std::string n = std::to_string(++number);
        builder.dense("fc" + n, layer_size(size, "model.hidden"));
        builder.relu("relu" + n);
        builder.dropout();
    }
    builder.dense("fc" + std::to_string(number + 1), spec.classes);
}

/// Two 5x5 convolutions, each with relu and 2x2 max-pooling, then 512 hidden units.
void build_lenet(const ModelSpec& spec, Builder& builder) {
    if (spec.channels.size() != 2) {
        fail(ErrorKind::kUsage, "model.channels: lenet has 2 convolutions, but {} numbers of channels are given",
             spec.channels.size());
    }
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string n = std::to_string(i + 1);
        builder.conv_same("conv" + n, layer_size(spec.channels[i], "model.channels"), 5);
        builder.relu("relu" + n);
        builder.max_pool("pool" + n, 2);
    }
    builder.dense("fc1", 512);
    builder.relu("relu3");
    builder.dropout();
    builder.dense("fc2", spec.classes);
}

struct ZooRow {
    const char* name;
    void (*build)(const ModelSpec&, Builder&);
};
constexpr std::array<ZooRow, 2> kZoo{{{"mlp", build_mlp}, {"lenet", build_lenet}}};

}  // namespace

Model build_model(const ModelSpec& spec) {
    if (spec.input.elements() < 1 || spec.classes < 1) {
        fail(ErrorKind::kUsage, "model: samples of {}x{}x{} and {} classes make no network", spec.input.height,
             spec.input.width, spec.input.channels, spec.classes);
    }
    if (!(spec.dropout >= 0 && spec.dropout < 1)) {
        fail(ErrorKind::kUsage, "model.dropout: {} is not in [0, 1)", spec.dropout);
    }
    std::string known;
    for (const ZooRow& row : kZoo) {
        if (spec.name == row.name) {
            Builder builder(spec);
            row.build(spec, builder);
            return builder.finish();
        }
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    fail(ErrorKind::kUsage, "model.name: \"{}\" is not one of {}", spec.name, known);
}

}  // namespace lockstep
