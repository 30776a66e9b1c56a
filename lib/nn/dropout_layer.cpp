// Dropout. What is kept is a function of (seed, layer, epoch, position of the sample, element): the same rows
// lose the same elements whoever computes them. Evaluation passes everything through.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class DropoutLayer final : public Layer {
  public:
    DropoutLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        if (pass.training) return apply(pass, values.x, values.y);
        if (spec_.in_place()) return;
        const auto elements = static_cast<int>(spec_.out.elements());
        backend_.copy_part(pass.stream, pass.rows, elements, values.x, {elements, 0}, values.y, {elements, 0});
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float*) override { apply(pass, dy, dy); }

  private:
    void apply(const Pass& pass, const float* from, float* to) {
        DropoutKey key = spec_.dropout;
        key.epoch = pass.epoch;
        backend_.dropout(pass.stream, key, pass.rows, spec_.out.elements(), pass.positions, from, to);
    }

    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_dropout_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<DropoutLayer>(spec, backend);
}

}  // namespace lockstep
