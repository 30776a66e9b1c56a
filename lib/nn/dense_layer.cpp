// A dense layer with bias, with the relu that may follow, on all local rows at once: its weight gradient runs each
// shard's chain and the canonical tree in one kernel. Behind a spatial map it reads the map's NHWC elements as they
// lie.
#include <algorithm>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {
namespace {

class DenseLayer final : public Layer {
  public:
    DenseLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void plan(int plan, const FoldProgram& fold, std::span<const int>) override {
        plans_.resize(std::max(plans_.size(), static_cast<std::size_t>(plan) + 1));
        Plan& made = plans_[static_cast<std::size_t>(plan)];
        made.dense =
            backend_.plan_dense(static_cast<int>(spec_.in.elements()), spec_.out.channels, fold, spec_.relu_inside);
        made.dw.resize(fold.roots.size());
        made.db.resize(fold.roots.size());
    }
    void forward(const Pass& pass, const LayerValues& values) override {
        dense(pass).forward(pass.stream, values.x, pass.weights + spec_.weight, pass.weights + spec_.bias, values.y);
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float* dx) override {
        dense(pass).backward_data(pass.stream, dy, pass.weights + spec_.weight, dx);
    }
    void backward_folded(const Pass& pass, const LayerValues& values, const float* dy,
                         std::span<float* const> gradients) override {
        Plan& plan = plans_[static_cast<std::size_t>(pass.plan)];
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            plan.dw[i] = gradients[i] + spec_.weight;
            plan.db[i] = gradients[i] + spec_.bias;
        }
        plan.dense->backward_weights(pass.stream, values.x, dy, plan.dw, plan.db);
    }

  private:
    struct Plan {
        std::unique_ptr<Dense> dense;
        std::vector<float*> dw, db;  // the roots' pointers of the current step
    };
    Dense& dense(const Pass& pass) { return *plans_[static_cast<std::size_t>(pass.plan)].dense; }

    LayerSpec spec_;
    Backend& backend_;
    std::vector<Plan> plans_;
};

}  // namespace

std::unique_ptr<Layer> make_dense_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<DenseLayer>(spec, backend);
}

}  // namespace lockstep
