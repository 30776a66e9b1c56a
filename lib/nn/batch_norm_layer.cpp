// Batch norm over the positions of a block (a shard), or with the statistics of the global batch, which StepRun brings;
// with the relu that may follow, forward and backward. An evaluation takes the running values.
#include <algorithm>

#include "nn/layer.hpp"

namespace lockstep {
namespace {

class BatchNormLayer final : public Layer {
  public:
    BatchNormLayer(const LayerSpec& spec, Backend& backend)
        : spec_(spec), backend_(backend), running_(backend.allocate(2 * sizeof(float) * channels())) {}

    void plan(int, const FoldProgram&, std::span<const int> block_rows) override {
        const int64_t most = block_rows.empty() ? 0 : *std::max_element(block_rows.begin(), block_rows.end());
        backend_.plan_batch_norm(positions(most), spec_.in.channels);
    }
    void prepare(Stream& stream, const float* weights) override {
        backend_.running_statistics(stream, spec_.in.channels, spec_.norm.epsilon, weights + spec_.running,
                                    running_->floats());
    }
    void forward(const Pass& pass, const LayerValues& values) override {
        const float* statistics = pass.training ? values.statistics : running_->floats();
        if (pass.training && !spec_.norm.global) {
            backend_.batch_moments(pass.stream, positions(pass.rows), spec_.in.channels, values.x, values.moments);
            backend_.batch_statistics(pass.stream, positions(pass.rows), spec_.in.channels, spec_.norm.epsilon,
                                      values.moments, values.statistics);
        }
        backend_.batch_norm(pass.stream, positions(pass.rows), spec_.in.channels, spec_.relu_inside, values.x,
                            statistics, gamma(pass), pass.weights + spec_.bias, values.y);
    }
    void backward(const Pass& pass, const LayerValues& values, float* dy, float* dx) override {
        backend_.batch_norm_backward(pass.stream, positions(pass.rows), spec_.in.channels, positions(values.samples),
                                     values.x, values.statistics, gamma(pass), values.sums, dy, mask(values), dx);
    }
    // The leaf: sums of dy * xhat, which is gamma's gradient, then of dy, which is beta's.
    int64_t leaf_elements() const override { return 2 * int64_t{spec_.in.channels}; }
    void backward_leaf(const Pass& pass, const LayerValues& values, const float* dy, float* leaf) override {
        backend_.batch_norm_sums(pass.stream, positions(pass.rows), spec_.in.channels, values.x, values.statistics, dy,
                                 mask(values), leaf);
    }
    void store_leaf(Stream& stream, const float* leaf, float* gradient) override {
        const int c = spec_.in.channels;
        backend_.copy_part(stream, 1, c, leaf, {c, 0}, gradient + spec_.weight, {c, 0});
        backend_.copy_part(stream, 1, c, leaf + c, {c, 0}, gradient + spec_.bias, {c, 0});
    }

  private:
    std::size_t channels() const { return static_cast<std::size_t>(spec_.in.channels); }
    int64_t positions(int64_t samples) const { return samples * spec_.in.height * spec_.in.width; }
    const float* gamma(const Pass& pass) const { return pass.weights + spec_.weight; }
    const float* mask(const LayerValues& values) const { return spec_.masks_relu ? values.y : nullptr; }

    LayerSpec spec_;
    Backend& backend_;
    std::unique_ptr<Buffer> running_;  // statistics of an evaluation
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm_layer(const LayerSpec& spec, Backend& backend) {
    return std::make_unique<BatchNormLayer>(spec, backend);
}

}  // namespace lockstep
