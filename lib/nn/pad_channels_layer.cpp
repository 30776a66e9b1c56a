// Channels of zeros before and behind those of the input, as the shortcuts without weights of a ResNet have.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class PadChannelsLayer final : public Layer {
  public:
    PadChannelsLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        backend_.fill(pass.stream, pass.rows * spec_.out.elements(), 0, values.y);
        backend_.copy_part(pass.stream, positions(pass), width(), values.x, inner(), values.y, outer());
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float* dx) override {
        backend_.copy_part(pass.stream, positions(pass), width(), dy, outer(), dx, inner());
    }

  private:
    int64_t positions(const Pass& pass) const { return int64_t{pass.rows} * spec_.out.height * spec_.out.width; }
    int width() const { return spec_.in.channels; }
    RowPart inner() const { return {spec_.in.channels, 0}; }
    RowPart outer() const { return {spec_.out.channels, spec_.pad_before}; }

    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_pad_channels_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<PadChannelsLayer>(spec, backend);
}

}  // namespace lockstep
