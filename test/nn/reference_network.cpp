#include "nn/reference_network.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_gemm.hpp"
#include "backend/cpu/reference_norm.hpp"
#include "nn/reference_run.hpp"

namespace lockstep {
namespace {

using namespace reference_run;

/// Weight gradients of one shard, added to nothing.
void weight_gradient(const LayerSpec& layer, int rows, const float* x, const float* dy, Values& gradient) {
    float* const dw = gradient.data() + layer.weight;
    float* const db = layer.bias < 0 ? nullptr : gradient.data() + layer.bias;
    const int out = layer.out.channels;
    if (layer.kind == LayerKind::kConv) {
        reference_conv_weight_gradient(layer.conv, rows, {0, out}, x, dy, dw);
        if (db != nullptr) reference_channel_sums(int64_t{rows} * layer.out.height * layer.out.width, out, dy, db);
        return;
    }
    const std::vector<int64_t> sizes{rows};
    const FoldProgram one = fold_program(1, {0, 1}, sizes);
    reference_dense_weight_gradient(one, static_cast<int>(layer.in.elements()), out, {0, out}, x, dy, {&dw, 1});
    if (db != nullptr) reference_dense_bias_gradient(one, out, {0, out}, dy, {&db, 1});
}

/// The gradient of one input of a layer.
Values data_gradient(const Run& run, std::size_t i, std::size_t k, const Shard& shard, const Values& dy) {
    const LayerSpec& layer = run.model.layers[i];
    const Values& x = run.input(shard, layer, k);
    Values dx(x.size());
    const int rows = shard.rows;
    const int64_t positions = int64_t{rows} * layer.out.height * layer.out.width;
    switch (layer.kind) {
        case LayerKind::kConv:
            reference_conv_backward_data(layer.conv, rows, dy.data(), run.at(layer.weight), dx.data());
            break;
        case LayerKind::kPool:
            if (layer.pool.kind == PoolKind::kMax) {
                reference::max_pool_backward(layer.pool, 0, rows * layer.in.height, dy.data(), shard.taps[i].data(),
                                             nullptr, dx.data());
            } else {
                reference::average_pool_backward(layer.pool, 0, rows * layer.in.height, dy.data(), nullptr, dx.data());
            }
            break;
        case LayerKind::kRelu:
            dx = dy;
            reference::relu_backward(static_cast<int64_t>(dx.size()), shard.outputs[i].data(), dx.data());
            break;
        case LayerKind::kDropout:
            dx = dy;
            drop(run, layer, shard, dx.data());
            break;
        case LayerKind::kDense:
            reference_dense_backward_data(rows, static_cast<int>(layer.in.elements()), layer.out.channels, dy.data(),
                                          run.at(layer.weight), dx.data());
            break;
        case LayerKind::kAdd:
            dx = dy;
            break;
        case LayerKind::kConcat: {
            int first = 0;
            for (std::size_t before = 0; before < k; ++before) first += channels_of(run, layer.inputs[before]);
            each_part(positions, layer.out.channels, first, channels_of(run, layer.inputs[k]), dy.data(), dx.data(),
                      false);
            break;
        }
        case LayerKind::kPadChannels:
            each_part(positions, layer.out.channels, layer.pad_before, layer.in.channels, dy.data(), dx.data(), false);
            break;
        case LayerKind::kLrn:
            reference::lrn_backward(layer.lrn, positions, x.data(), dy.data(), dx.data());
            break;
        case LayerKind::kSigmoid:
            for (std::size_t e = 0; e < dx.size(); ++e) {
                const float y = shard.outputs[i][e];
                dx[e] = dy[e] * (y * (1.0F - y));
            }
            break;
        case LayerKind::kBatchNorm: {
            const int64_t count = layer.norm.global ? all_samples(run) : rows;
            reference::batch_norm_backward(positions, layer.in.channels, count * positions_of(layer), x.data(),
                                           shard.statistics[i].data(), run.at(layer.weight), shard.sums[i].data(),
                                           dy.data(), nullptr, dx.data());
            break;
        }
        case LayerKind::kExpand:
            break;
    }
    return dx;
}

/// gamma's and beta's gradients, and the sums that the data gradient reads.
void backward_norm(Run& run, std::size_t i) {
    const LayerSpec& layer = run.model.layers[i];
    const int c = layer.in.channels;
    std::vector<Values> of_shards;
    for (Shard& shard : run.shards) {
        Values& sums = shard.sums[i];
        sums.resize(size(2 * c));
        if (shard.rows > 0) {
            reference::batch_norm_sums(shard.rows * positions_of(layer), c, run.input(shard, layer).data(),
                                       shard.statistics[i].data(), shard.gradients[i].data(), nullptr, sums.data());
            std::copy_n(sums.begin(), c, shard.total.gradient.begin() + layer.weight);
            std::copy_n(sums.begin() + c, c, shard.total.gradient.begin() + layer.bias);
        }
        of_shards.push_back(sums);
    }
    if (!layer.norm.global) return;
    Values total;
    tree(run.sizes, of_shards, 0, static_cast<int>(run.sizes.size()), total,
         [](Values& left, const Values& right, int64_t, int64_t) {
             for (std::size_t e = 0; e < left.size(); ++e) left[e] = left[e] + right[e];
         });
    for (Shard& shard : run.shards) shard.sums[i] = total;
}

/// Readers have come in descending order: the first wrote, the others are added.
Values sum_of_readers(std::vector<Values>& arrived, Twin twin) {
    if (arrived.empty()) return {};
    if (twin == Twin::kAscendingReaders) std::reverse(arrived.begin(), arrived.end());
    Values sum = std::move(arrived.front());
    for (std::size_t k = 1; k < arrived.size(); ++k) {
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] = sum[e] + arrived[k][e];
    }
    return sum;
}

void backward(Run& run) {
    const Model& model = run.model;
    for (Shard& shard : run.shards) {
        shard.total.gradient.assign(size(model.parameters.flat_elements()), 0.0F);
        if (shard.rows == 0) continue;
        Values losses(size(shard.rows));
        Values& dlogits = shard.arrived.back().emplace_back(shard.outputs.back().size());
        reference::softmax_cross_entropy(shard.rows, model.layers.back().out.channels, shard.outputs.back().data(),
                                         run.samples.labels.data() + shard.first, losses.data(), dlogits.data());
        for (const float loss : losses) shard.total.loss = shard.total.loss + loss;
    }
    for (std::size_t i = model.layers.size(); i-- > 0;) {
        const LayerSpec& layer = model.layers[i];
        for (Shard& shard : run.shards) shard.gradients[i] = sum_of_readers(shard.arrived[i], run.twin);
        if (layer.kind == LayerKind::kBatchNorm) backward_norm(run, i);
        for (Shard& shard : run.shards) {
            const Values& dy = shard.gradients[i];
            if (shard.rows == 0 || dy.empty()) continue;
            if (layer.has_weights() && layer.kind != LayerKind::kBatchNorm) {
                weight_gradient(layer, shard.rows, run.input(shard, layer).data(), dy.data(), shard.total.gradient);
            }
            for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
                if (layer.inputs[k] < 0) continue;
                shard.arrived[size(layer.inputs[k])].push_back(data_gradient(run, i, k, shard, dy));
            }
        }
    }
}

void add_right(StepSums& left, const StepSums& right) {
    left.loss = left.loss + right.loss;
    for (std::size_t i = 0; i < left.gradient.size(); ++i) left.gradient[i] = left.gradient[i] + right.gradient[i];
}

}  // namespace

Samples random_samples(SampleShape shape, int classes, int rows, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Samples samples;
    samples.rows = rows;
    samples.epoch = 3;
    samples.pixels.resize(size(rows * shape.elements()));
    for (float& pixel : samples.pixels) pixel = normal(random);
    for (int r = 0; r < rows; ++r)
        samples.labels.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(classes)));
    samples.positions.resize(size(rows));
    std::iota(samples.positions.begin(), samples.positions.end(), int64_t{1000});
    return samples;
}

StepSums reference_step(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                        const Values& weights, Twin twin) {
    Run run = forward(model, samples, sizes, weights, true, twin);
    backward(run);
    std::vector<StepSums> of_shards;
    for (Shard& shard : run.shards) of_shards.push_back(std::move(shard.total));
    StepSums total;
    if (twin != Twin::kLeftToRight) {
        tree(sizes, of_shards, 0, static_cast<int>(sizes.size()), total,
             [](StepSums& left, const StepSums& right, int64_t, int64_t) { add_right(left, right); });
        return total;
    }
    for (std::size_t v = 0; v < of_shards.size(); ++v) {
        if (sizes[v] == 0) continue;
        if (total.gradient.empty())
            total = of_shards[v];
        else
            add_right(total, of_shards[v]);
    }
    return total;
}

Values reference_running(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                         const Values& weights, Twin twin) {
    const Run run = forward(model, samples, sizes, weights, true, twin);
    std::vector<int64_t> counted(sizes.begin(), sizes.end());
    if (twin == Twin::kFirstShardsNorm) std::fill(counted.begin() + (counted.size() + 1) / 2, counted.end(), 0);
    const int64_t samples_counted = std::accumulate(counted.begin(), counted.end(), int64_t{0});
    Values after = weights;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const LayerSpec& layer = model.layers[i];
        if (layer.kind != LayerKind::kBatchNorm) continue;
        const Values moments = whole_moments(run, i, counted);
        reference::update_running(samples_counted * positions_of(layer), layer.in.channels, layer.norm.momentum,
                                  layer.norm.one_minus_momentum, layer.norm.unbiased, moments.data(),
                                  after.data() + layer.running);
    }
    return after;
}

Values reference_logits(const Model& model, const Samples& samples, const Values& weights) {
    const int64_t all = samples.rows;
    return forward(model, samples, {&all, 1}, weights, false, Twin::kNone).shards[0].outputs.back();
}

}  // namespace lockstep
