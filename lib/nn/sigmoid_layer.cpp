// A sigmoid of every element, whose derivative is one of its output.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class SigmoidLayer final : public Layer {
  public:
    SigmoidLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        backend_.sigmoid(pass.stream, pass.rows * spec_.out.elements(), values.x, values.y);
    }
    void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) override {
        backend_.sigmoid_backward(pass.stream, pass.rows * spec_.out.elements(), values.y, dy, dx);
    }

  private:
    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_sigmoid_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<SigmoidLayer>(spec, backend);
}

}  // namespace lockstep
