// What a layer is (LayerSpec: shapes and numbers, no device) and what it can do on a device (Layer). A model is a list
// of LayerSpec in topological order (zoo.cpp); make_layer turns each into operations of a Backend. A new kind of layer
// is one file with a Layer, one enumerator and one line in make_layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "core/shape.hpp"

namespace lockstep {

enum class LayerKind {
    kConv,
    kPool,  // a global pooling is one whose kernel is the map
    kRelu,
    kDropout,
    kDense,
    kBatchNorm,
    kAdd,          // the sum of its inputs, all of one shape, in their order
    kConcat,       // channels of its inputs beside each other
    kPadChannels,  // channels of zeros before and behind
    kLrn,
    kSigmoid,
    kExpand,  // columns of a table to numbers and one-hot
};

/// Batch norm of a layer; `weight` is gamma and `bias` beta.
struct BatchNormSpec {
    bool global = false;  // statistics of the global batch; else of the shard
    float epsilon = 1e-5f;
    float momentum = 0.9f, one_minus_momentum = 0.1f;  // of the running values; the second in fp64, rounded once
    bool unbiased = false;
};

/// Inputs of a layer, at most.
inline constexpr std::size_t kMostInputs = 16;

struct LayerSpec {
    LayerKind kind = LayerKind::kDense;
    std::string name;
    std::vector<int> inputs;            // numbers of the layers before whose outputs it reads; -1: the samples
    SampleShape in, out;                // in: of the first input
    ConvShape conv{};                   // kConv
    PoolShape pool{};                   // kPool
    DropoutKey dropout{};               // kDropout: all but the epoch
    BatchNormSpec norm{};               // kBatchNorm
    LrnShape lrn{};                     // kLrn
    int pad_before = 0;                 // kPadChannels: channels of zeros before those of the input
    std::vector<ExpandColumn> columns;  // kExpand
    int64_t weight = -1;                // kConv, kDense, kBatchNorm: where the tensors begin in the flat arrays
    int64_t bias = -1;                  // -1: it has none
    int64_t running = -1;    // kBatchNorm: where running mean and variance begin, behind the trainable tensors
    int64_t parameters = 0;  // elements of both

    // What neighbours do for each other; set by link_layers().
    bool reuses_input = false;   // kRelu, kDropout: nobody else reads its input, and its output lies there
    bool relu_inside = false;    // kConv, kDense, kBatchNorm: the relu after is applied as the output is written
    bool forward_done = false;   // kRelu: by the layer before
    bool masks_relu = false;     // kPool: the relu before is undone at pooled size, where 0 means that no tap passed;
                                 // kBatchNorm: the relu after is undone while its gradient is read
    bool backward_done = false;  // kRelu: by one of these
    bool data_gradient = true;   // false where nothing before it has weights: dx is never asked for
    bool by_block = false;       // it runs shard by shard
    std::vector<int> input_channels;  // of all inputs

    bool has_weights() const { return weight >= 0; }
    /// Whether a gradient of its output is of use.
    bool reaches_weights() const { return has_weights() || data_gradient; }
    bool in_place() const { return reuses_input; }
    /// The gradient of its inputs is that of its output, changed in place if at all.
    bool passes_gradient() const {
        return kind == LayerKind::kAdd || kind == LayerKind::kRelu || kind == LayerKind::kDropout;
    }
    /// Between its input and its output all shards of all ranks meet.
    bool is_border() const { return kind == LayerKind::kBatchNorm && norm.global; }
    bool backward_reads_input() const { return has_weights() || kind == LayerKind::kLrn; }
    bool backward_reads_output() const {
        return masks_relu || kind == LayerKind::kSigmoid || (kind == LayerKind::kRelu && !backward_done);
    }
    /// Bytes that its forward leaves for its backward, beside its output: the taps of a maximum.
    int64_t tap_bytes() const { return kind == LayerKind::kPool && pool.kind == PoolKind::kMax ? out.elements() : 0; }
};

/// Some rows of a plan and the stream that works on them.
struct Pass {
    Stream& stream;
    int plan = 0;  // a number: what Layer::plan was given
    int rows = 0;
    bool training = true;
    uint32_t epoch = 0;
    const int64_t* positions = nullptr;  // of these rows; training only
    const float* weights = nullptr;      // flat
};

/// A layer's values for the rows of a pass. In place: y == x.
struct LayerValues {
    const float* x = nullptr;  // of the first input
    float* y = nullptr;
    uint8_t* taps = nullptr;
    std::array<const float*, kMostInputs> inputs{};  // of a layer with several: all
    int input = 0;                                   // on the way back: whose gradient dx is
    // Batch norm, [2][channels] each.
    float* moments = nullptr;     // of this block
    float* statistics = nullptr;  // mean and 1 / deviation
    const float* sums = nullptr;  // on the way back: of dy * xhat and of dy
    int64_t samples = 0;          // behind statistics and sums
};

class Layer {
  public:
    virtual ~Layer() = default;

    /// Plans number `plan`: dense operations for all rows of `fold` at once, the others for blocks of rows.
    virtual void plan(int /*plan*/, const FoldProgram& /*fold*/, std::span<const int> /*block_rows*/) {}
    /// Before the first pass of a step: the weights may have changed.
    virtual void prepare(Stream&, const float* /*weights*/) {}

    virtual void forward(const Pass& pass, const LayerValues& values) = 0;
    /// dy to dx, of one input. Where the layer passes its gradient on, dx == dy; kAdd is not asked. Else dy stays.
    virtual void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) = 0;

    // Weight gradients. Dense layers fold all local shards in one call: `gradients[i]` is the flat gradient of root i.
    // The others give one leaf for each shard, of leaf_elements() floats, added with Backend::add and stored at the
    // end.
    virtual void backward_folded(const Pass&, const LayerValues&, const float* /*dy*/,
                                 std::span<float* const> /*gradients*/) {}
    virtual int64_t leaf_elements() const { return 0; }
    virtual void backward_leaf(const Pass&, const LayerValues&, const float* /*dy*/, float* /*leaf*/) {}
    virtual void store_leaf(Stream&, const float* /*leaf*/, float* /*gradient*/) {}
};

std::unique_ptr<Layer> make_layer(const LayerSpec& spec, Backend& backend);

std::unique_ptr<Layer> make_conv_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_pool_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_relu_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_dropout_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_dense_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_add_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_concat_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_batch_norm_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_lrn_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_expand_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_sigmoid_layer(const LayerSpec& spec, Backend& backend);
std::unique_ptr<Layer> make_pad_channels_layer(const LayerSpec& spec, Backend& backend);

}  // namespace lockstep
