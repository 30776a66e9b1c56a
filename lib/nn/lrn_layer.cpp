// Local response normalisation across channels.
#include "nn/layer.hpp"

namespace lockstep {
namespace {

class LrnLayer final : public Layer {
  public:
    LrnLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void forward(const Pass& pass, const LayerValues& values) override {
        backend_.lrn(pass.stream, spec_.lrn, positions(pass), values.x, values.y);
    }
    void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) override {
        backend_.lrn_backward(pass.stream, spec_.lrn, positions(pass), values.x, dy, dx);
    }

  private:
    int64_t positions(const Pass& pass) const { return int64_t{pass.rows} * spec_.in.height * spec_.in.width; }

    LayerSpec spec_;
    Backend& backend_;
};

}  // namespace

std::unique_ptr<Layer> make_lrn_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<LrnLayer>(spec, backend);
}

}  // namespace lockstep
