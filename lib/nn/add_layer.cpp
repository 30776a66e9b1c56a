// The sum of several outputs, in their order. Its gradient is that of each of them: the run hands it on.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class AddLayer final : public Layer {
  public:
    AddLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        const int64_t n = pass.rows * spec_.out.elements();
        const float* sum = values.inputs[0];
        for (std::size_t k = 1; k < spec_.inputs.size(); ++k) {
            backend_.add(pass.stream, n, sum, values.inputs[k], values.y);
            sum = values.y;
        }
    }
    void backward(const Pass&, const LayerValues&, float*, float*) override {}

  private:
    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_add_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<AddLayer>(spec, backend);
}

}  // namespace lockstep
