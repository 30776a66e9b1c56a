// A dense layer, with or without bias, with the relu that may follow. On all local rows at once its weight gradient
// runs each shard's chain and the canonical tree in one kernel; before a layer that works shard by shard it does, too:
// same sums, one leaf a shard. Behind a spatial map it reads the map's NHWC elements as they lie.
#include <algorithm>
#include <map>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {
namespace {

int inputs_of(const LayerSpec& spec) {
    return static_cast<int>(spec.in.elements());
}

const float* bias_of(const LayerSpec& spec, const Pass& pass) {
    return spec.bias < 0 ? nullptr : pass.weights + spec.bias;
}

class DenseLayer final : public Layer {
  public:
    DenseLayer(const LayerSpec& spec, Backend& backend) : spec_(spec), backend_(backend) {}

    void plan(int plan, const FoldProgram& fold, std::span<const int>) override {
        plans_.resize(std::max(plans_.size(), static_cast<std::size_t>(plan) + 1));
        Plan& made = plans_[static_cast<std::size_t>(plan)];
        made.dense = backend_.plan_dense(inputs_of(spec_), spec_.out.channels, fold, spec_.relu_inside);
        made.dw.resize(fold.roots.size());
        made.db.resize(fold.roots.size());
    }
    void forward(const Pass& pass, const LayerValues& values) override {
        dense(pass).forward(pass.stream, values.x, pass.weights + spec_.weight, bias_of(spec_, pass), values.y);
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float* dx) override {
        dense(pass).backward_data(pass.stream, dy, pass.weights + spec_.weight, dx);
    }
    void backward_folded(const Pass& pass, const LayerValues& values, const float* dy,
                         std::span<float* const> gradients) override {
        Plan& plan = plans_[static_cast<std::size_t>(pass.plan)];
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            plan.dw[i] = gradients[i] + spec_.weight;
            if (spec_.bias >= 0) plan.db[i] = gradients[i] + spec_.bias;
        }
        plan.dense->backward_weights(pass.stream, values.x, dy, plan.dw,
                                     spec_.bias < 0 ? std::span<float* const>() : plan.db);
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

/// Shard by shard. A stream's operations share no scratch with another's.
class BlockDenseLayer final : public Layer {
  public:
    BlockDenseLayer(const LayerSpec& spec, Backend& backend)
        : spec_(spec), backend_(backend), plans_(static_cast<std::size_t>(backend.streams())) {}

    void plan(int, const FoldProgram&, std::span<const int> block_rows) override {
        for (const int rows : block_rows) {
            const int64_t size = rows;
            const FoldProgram one = fold_program(1, {0, 1}, {&size, 1});
            for (auto& of_stream : plans_) {
                auto& dense = of_stream[rows];
                if (!dense) dense = backend_.plan_dense(inputs_of(spec_), spec_.out.channels, one, spec_.relu_inside);
            }
        }
    }
    void forward(const Pass& pass, const LayerValues& values) override {
        dense(pass).forward(pass.stream, values.x, pass.weights + spec_.weight, bias_of(spec_, pass), values.y);
    }
    void backward(const Pass& pass, const LayerValues&, float* dy, float* dx) override {
        dense(pass).backward_data(pass.stream, dy, pass.weights + spec_.weight, dx);
    }
    int64_t leaf_elements() const override { return weights() + (spec_.bias < 0 ? 0 : spec_.out.channels); }
    void backward_leaf(const Pass& pass, const LayerValues& values, const float* dy, float* leaf) override {
        float* const dw = leaf;
        float* const db = leaf + weights();
        dense(pass).backward_weights(pass.stream, values.x, dy, {&dw, 1},
                                     spec_.bias < 0 ? std::span<float* const>() : std::span(&db, 1));
    }
    void store_leaf(Stream& stream, const float* leaf, float* gradient) override {
        const int in = inputs_of(spec_);
        const int out = spec_.out.channels;
        backend_.copy_part(stream, out, in, leaf, {in, 0}, gradient + spec_.weight, {in, 0});
        if (spec_.bias >= 0) {
            backend_.copy_part(stream, 1, out, leaf + weights(), {out, 0}, gradient + spec_.bias, {out, 0});
        }
    }

  private:
    int64_t weights() const { return spec_.in.elements() * spec_.out.channels; }
    Dense& dense(const Pass& pass) {
        return *plans_[static_cast<std::size_t>(pass.stream.index())].find(pass.rows)->second;
    }

    LayerSpec spec_;
    Backend& backend_;
    std::vector<std::map<int, std::unique_ptr<Dense>>> plans_;  // of each stream, by rows
};

}  // namespace

std::unique_ptr<Layer> make_dense_layer(const LayerSpec& spec, Backend& backend) {
    if (spec.by_block) return std::make_unique<BlockDenseLayer>(spec, backend);
    return std::make_unique<DenseLayer>(spec, backend);
}

}  // namespace lockstep
