// Appends layers to a model, each on top of the one before or of any other: works out shapes, checks that they fit, and
// gives each layer its tensors with their names and initial values. The models of the zoo and custom ones are made with
// nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "nn/window.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

/// How weights start; a layer of `in` inputs to each output, and `out` outputs that each input reaches.
enum class WeightStart {
    kSmall,           // normal, variance 1 / (3 in): that of PyTorch's layers
    kHe,              // normal, variance 2 / in
    kHeOut,           // normal, variance 2 / out: torchvision's convolutions
    kScaled,          // truncated normal of variance 1 / in: tf.variance_scaling_initializer
    kTruncatedHe,     // normal of variance 2 / in cut at two deviations
    kTruncated,       // normal of variance 1 / in cut at two deviations
    kGiven,           // normal of the deviation given
    kGivenTruncated,  // the same, cut at two deviations
};

struct Weights {
    WeightStart start;
    double deviation = 0;  // kGiven, kGivenTruncated
    bool bias = true;
    double bias_value = 0;
};

/// What layers start with where a model does not say so one by one; a flavor's habit.
struct StartingRules {
    WeightStart conv = WeightStart::kSmall;
    WeightStart hidden = WeightStart::kSmall;  // dense, before a relu
    WeightStart output = WeightStart::kSmall;  // the last dense
};

class Builder {
  public:
    explicit Builder(const ModelSpec& spec);

    const ModelSpec& spec() const { return spec_; }
    bool is_flavor(const char* name) const { return spec_.flavor == name; }
    int outputs() const;  // of the last layer: classes, or 1 for a loss of one value

    // Where the next layer is put: on layer `at` (-1: the samples).
    int at() const { return at_; }
    void continue_from(int layer) { at_ = layer; }
    SampleShape shape() const { return shape_of(at_); }
    SampleShape shape_of(int layer) const;

    void set_rules(const StartingRules& rules) { rules_ = rules; }
    const StartingRules& rules() const { return rules_; }
    /// Written before every fault: where a custom layer stands in its file.
    void set_place(std::string place) { place_ = std::move(place); }
    /// Refuses the layer under way: "model.name: resnet50 does not fit …: layer conv1 …", or at its place in a file.
    [[noreturn]] void refuse(const std::string& layer, const std::string& why) const;

    /// The same of a layer whose memory nobody has.
    [[noreturn]] void refuse_size(const std::string& layer, const std::string& why) const;

    // Each returns the number of the (last) layer that it appends.
    int conv(const std::string& name, int channels, const Window& window);
    int conv(const std::string& name, int channels, const Window& window, const Weights& weights, int groups = 1);
    /// A convolution without bias and the batch norm of its output.
    int conv_norm(const std::string& name, const std::string& norm, int channels, const Window& window);
    int batch_norm(const std::string& name);
    int max_pool(const std::string& name, const Window& window);
    int average_pool(const std::string& name, const Window& window);
    int global_pool(const std::string& name, PoolKind kind = PoolKind::kAverage);
    int relu(const std::string& name);
    int sigmoid(const std::string& name);
    int lrn(const std::string& name, int radius, float bias, float alpha, float beta);
    /// Of model.dropout, named and numbered; nothing where nothing is dropped.
    void dropout();
    int dropout(const std::string& name, double rate);
    int dense(const std::string& name, int64_t out);
    int dense(const std::string& name, int64_t out, const Weights& weights);
    /// The last dense layer, of outputs().
    int logits(const std::string& name);
    int add(const std::string& name, std::vector<int> inputs);
    int concat(const std::string& name, std::vector<int> inputs);
    int pad_channels(const std::string& name, int before, int behind);
    /// Columns of the samples (by number) as numbers and one-hot; nothing where that would change nothing.
    int expand(const std::string& name, std::span<const int> columns);

    Model finish() &&;

    static std::string text(SampleShape shape);

  private:
    LayerSpec& append(LayerKind kind, const std::string& name);
    int last() const { return static_cast<int>(model_.layers.size()) - 1; }
    int done(LayerSpec& layer, SampleShape out);
    int outputs_of(const std::string& name, int64_t size) const;
    int pool(const std::string& name, PoolKind kind, const Window& window);
    void check_picture(const std::string& name, const char* what) const;
    Window fitting(const std::string& name, const char* what, const Window& window) const;
    void parameters(LayerSpec& layer, std::vector<int64_t> shape, int64_t in, int64_t out, const Weights& weights);

    const ModelSpec& spec_;
    Model model_;
    int at_ = -1;
    StartingRules rules_;
    std::string place_;
    uint64_t dropouts_ = 0;
};

/// A number of outputs from the config that a layer can have, or a fault that names the key.
int layer_size(int64_t size, const std::string& key);

}  // namespace lockstep
