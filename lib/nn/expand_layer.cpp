// Columns of a table to numbers and one-hot. It reads the samples, so nothing goes back through it.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class ExpandLayer final : public Layer {
  public:
    ExpandLayer(const LayerSpec& spec, Backend& backend)
        : expand_(backend.plan_expand(static_cast<int>(spec.in.elements()), spec.columns)) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        expand_->forward(pass.stream, pass.rows, values.x, values.y);
    }
    void backward(const Pass&, const LayerValues&, float*, float*) override {}

  private:
    std::unique_ptr<Expand> expand_;
};

}  // namespace

std::unique_ptr<Layer> make_expand_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<ExpandLayer>(spec, backend);
}

}  // namespace lockstep
