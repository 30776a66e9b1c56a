// A convolution, with or without bias, with the relu that may follow. Works on any block of rows; its weight gradient
// is one leaf a shard.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class ConvLayer final : public Layer {
  public:
    ConvLayer(const LayerSpec& spec, Backend& backend)
        : spec_(spec), conv_(backend.plan_conv(spec.conv, spec.relu_inside, spec.data_gradient)) {}

    void plan(int, const FoldProgram&, std::span<const int> block_rows) override {
        for (const int rows : block_rows) conv_->plan_rows(rows);
    }
    void prepare(Stream& stream, const float* weights) override { conv_->prepare(stream, weights + spec_.weight); }
    void forward(const Pass& pass, const LayerValues& values) override {
        conv_->forward(pass.stream, pass.rows, values.x, spec_.bias < 0 ? nullptr : pass.weights + spec_.bias,
                       values.y);
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float* dx) override {
        conv_->backward_data(pass.stream, pass.rows, dy, dx);
    }
    int64_t leaf_elements() const override { return conv_->leaf_elements(); }
    void backward_leaf(const Pass& pass, const LayerValues& values, const float* dy, float* leaf) override {
        conv_->backward_weights(pass.stream, pass.rows, values.x, dy, leaf);
    }
    void store_leaf(Stream& stream, const float* leaf, float* gradient) override {
        conv_->store_gradient(stream, leaf, gradient + spec_.weight, spec_.bias < 0 ? nullptr : gradient + spec_.bias);
    }

  private:
    LayerSpec spec_;
    std::unique_ptr<Conv> conv_;
};

}  // namespace

std::unique_ptr<Layer> make_conv_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<ConvLayer>(spec, backend);
}

}  // namespace lockstep
