// A relu; mostly done by its neighbours (LayerSpec), and then nothing here.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class ReluLayer final : public Layer {
  public:
    ReluLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        if (!spec_.forward_done) backend_.relu(pass.stream, pass.rows * spec_.out.elements(), values.x, values.y);
    }
    // A dropout after it may have overwritten y: what it dropped is 0 here, and its gradient is 0 already.
    void backward(const Pass& pass, const LayerValues& values, float* dy, float*) override {
        if (!spec_.backward_done) backend_.relu_backward(pass.stream, pass.rows * spec_.out.elements(), values.y, dy);
    }

  private:
    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_relu_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<ReluLayer>(spec, backend);
}

}  // namespace lockstep
