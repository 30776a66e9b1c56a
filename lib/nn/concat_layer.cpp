// Channels of several maps of one size beside each other.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class ConcatLayer final : public Layer {
  public:
    ConcatLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {
        int first = 0;
        for (const int channels : spec.input_channels) {
            firsts_.push_back(first);
            first += channels;
        }
    }

    void forward(const Pass& pass, const LayerValues& values) override {
        for (std::size_t k = 0; k < firsts_.size(); ++k) {
            backend_.copy_part(pass.stream, positions(pass), width(k), values.inputs[k], alone(k), values.y, part(k));
        }
    }
    void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) override {
        const auto k = static_cast<std::size_t>(values.input);
        backend_.copy_part(pass.stream, positions(pass), width(k), dy, part(k), dx, alone(k));
    }

  private:
    int64_t positions(const Pass& pass) const { return int64_t{pass.rows} * spec_.out.height * spec_.out.width; }
    int width(std::size_t k) const { return spec_.input_channels[k]; }
    RowPart alone(std::size_t k) const { return {width(k), 0}; }
    RowPart part(std::size_t k) const { return {spec_.out.channels, firsts_[k]}; }

    LayerSpec spec_;
    Backend& backend_;
    std::vector<int> firsts_;  // channel of y
};

}  // namespace

std::unique_ptr<Layer> make_concat_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<ConcatLayer>(spec, backend);
}

}  // namespace lockstep
