// Maximum or average pooling. Behind a relu and a maximum, the relu is undone here, at pooled size: a window whose
// maximum is 0 let nothing pass.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class PoolLayer final : public Layer {
  public:
    PoolLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), pool_(backend.plan_pool(spec.pool)) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        pool_->forward(pass.stream, pass.rows, values.x, values.y, values.taps);
    }
    void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) override {
        pool_->backward(pass.stream, pass.rows, dy, values.taps, spec_.masks_relu ? values.y : nullptr, dx);
    }

  private:
    LayerSpec spec_;
    std::unique_ptr<Pool> pool_;
};

}  // namespace

std::unique_ptr<Layer> make_pool_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<PoolLayer>(spec, backend);
}

}  // namespace lockstep
