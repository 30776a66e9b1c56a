#include "nn/reference_network.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>

#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_gemm.hpp"
#include "backend/cpu/reference_loss.hpp"
#include "backend/cpu/reference_norm.hpp"
#include "core/philox.hpp"

namespace lockstep {
namespace {

using Values = std::vector<float>;

std::size_t size(int64_t n) {
    return static_cast<std::size_t>(n);
}

/// One shard's samples and what each layer makes of them.
struct Shard {
    int first = 0, rows = 0;
    Values pixels;
    std::vector<Values> outputs, gradients;    // of each layer
    std::vector<std::vector<Values>> arrived;  // gradients of each layer's output, from its readers
    std::vector<std::vector<uint8_t>> taps;
    std::vector<Values> moments, statistics, sums;  // of batch norm
    StepSums total;
};

struct Run {
    const Model& model;
    const Samples& samples;
    const Values& weights;
    bool training;
    Twin twin;
    std::vector<int64_t> sizes;
    std::vector<Shard> shards;

    const Values& input(const Shard& shard, const LayerSpec& layer, std::size_t k = 0) const {
        return layer.inputs[k] < 0 ? shard.pixels : shard.outputs[size(layer.inputs[k])];
    }
    const float* at(int64_t offset) const { return offset < 0 ? nullptr : weights.data() + offset; }
};

/// The canonical tree over [lo, hi) of values that merge(left, right, left count, right count) joins; their count, 0
/// where all shards are empty.
template <class Value, class Merge>
int64_t tree(std::span<const int64_t> counts, const std::vector<Value>& values, int lo, int hi, Value& out,
             const Merge& merge) {
    if (hi - lo == 1) {
        if (counts[size(lo)] > 0) out = values[size(lo)];
        return counts[size(lo)];
    }
    const int middle = split_point(lo, hi);
    Value right;
    const int64_t left_count = tree(counts, values, lo, middle, out, merge);
    const int64_t right_count = tree(counts, values, middle, hi, left_count > 0 ? right : out, merge);
    if (left_count > 0 && right_count > 0) merge(out, right, left_count, right_count);
    return left_count + right_count;
}

int64_t positions_of(const LayerSpec& layer) {
    return int64_t{layer.in.height} * layer.in.width;
}

/// Merged moments of all shards.
Values whole_moments(const Run& run, std::size_t i, std::span<const int64_t> sizes) {
    const LayerSpec& layer = run.model.layers[i];
    std::vector<Values> of_shards;
    for (const Shard& shard : run.shards) of_shards.push_back(shard.moments[i]);
    Values total;
    tree(sizes, of_shards, 0, static_cast<int>(sizes.size()), total,
         [&](Values& left, const Values& right, int64_t left_samples, int64_t right_samples) {
             reference::merge_moments(layer.in.channels, left_samples * positions_of(layer),
                                      right_samples * positions_of(layer), left.data(), right.data(), left.data());
         });
    return total;
}

int64_t all_samples(const Run& run) {
    return std::accumulate(run.sizes.begin(), run.sizes.end(), int64_t{0});
}

void forward_norm(Run& run, std::size_t i) {
    const LayerSpec& layer = run.model.layers[i];
    const int c = layer.in.channels;
    for (Shard& shard : run.shards) {
        shard.moments[i].resize(size(2 * c));
        shard.statistics[i].resize(size(2 * c));
        if (run.training && shard.rows > 0) {
            reference::batch_moments(shard.rows * positions_of(layer), c, run.input(shard, layer).data(),
                                     shard.moments[i].data());
        }
    }
    const Values whole = run.training && layer.norm.global ? whole_moments(run, i, run.sizes) : Values();
    for (Shard& shard : run.shards) {
        if (shard.rows == 0) continue;
        const int64_t rows = shard.rows * positions_of(layer);
        float* const statistics = shard.statistics[i].data();
        if (!run.training) {
            reference::running_statistics(c, layer.norm.epsilon, run.at(layer.running), statistics);
        } else if (layer.norm.global) {
            reference::batch_statistics(all_samples(run) * positions_of(layer), c, layer.norm.epsilon, whole.data(),
                                        statistics);
        } else {
            reference::batch_statistics(rows, c, layer.norm.epsilon, shard.moments[i].data(), statistics);
        }
        reference::batch_norm(rows, c, false, run.input(shard, layer).data(), statistics, run.at(layer.weight),
                              run.at(layer.bias), shard.outputs[i].data());
    }
}

void drop(const Run& run, const LayerSpec& layer, const Shard& shard, float* values) {
    const double p = layer.dropout.probability;
    const DropoutKey& key = layer.dropout;
    const DropoutMask mask{
        RandomStream(key.seed, Purpose::kDropout, key.layer, static_cast<uint32_t>(run.samples.epoch)).key(),
        static_cast<uint32_t>(std::floor(p * 4294967296.0)), static_cast<float>(1.0 / (1.0 - p))};
    const int64_t elements = layer.out.elements();
    for (int r = 0; r < shard.rows; ++r) {
        const int64_t position =
            run.twin == Twin::kDropoutByLocalRow ? r : run.samples.positions[size(shard.first + r)];
        reference::dropout_row(mask, position, 0, elements, values + r * elements, values + r * elements);
    }
}

/// Channels [first, first + width) of `wide` maps beside those of `narrow`; copied to whichever is not const.
template <class Wide, class Narrow>
void each_part(int64_t positions, int stride, int first, int width, Wide* wide, Narrow* narrow, bool out) {
    for (int64_t p = 0; p < positions; ++p) {
        for (int c = 0; c < width; ++c) {
            if constexpr (!std::is_const_v<Wide>) {
                if (out) wide[p * stride + first + c] = narrow[p * width + c];
            }
            if constexpr (!std::is_const_v<Narrow>) {
                if (!out) narrow[p * width + c] = wide[p * stride + first + c];
            }
        }
    }
}

int channels_of(const Run& run, int input) {
    return input < 0 ? run.model.layers[0].in.channels : run.model.layers[size(input)].out.channels;
}

void forward_layer(const Run& run, std::size_t i, Shard& shard) {
    const LayerSpec& layer = run.model.layers[i];
    const Values& x = run.input(shard, layer);
    Values& y = shard.outputs[i];
    const int rows = shard.rows;
    const int64_t positions = int64_t{rows} * layer.out.height * layer.out.width;
    switch (layer.kind) {
        case LayerKind::kConv:
            reference_conv_forward(layer.conv, rows, x.data(), run.at(layer.weight), run.at(layer.bias), false,
                                   y.data());
            break;
        case LayerKind::kPool:
            if (layer.pool.kind == PoolKind::kMax) {
                reference::max_pool_forward(layer.pool, 0, rows * layer.out.height, x.data(), y.data(),
                                            shard.taps[i].data());
            } else {
                reference::average_pool_forward(layer.pool, 0, rows * layer.out.height, x.data(), y.data());
            }
            break;
        case LayerKind::kRelu:
            reference::relu(static_cast<int64_t>(x.size()), x.data(), y.data());
            break;
        case LayerKind::kDropout:
            y = x;
            if (run.training) drop(run, layer, shard, y.data());
            break;
        case LayerKind::kDense:
            reference_dense_forward(rows, static_cast<int>(layer.in.elements()), layer.out.channels, x.data(),
                                    run.at(layer.weight), run.at(layer.bias), false, y.data());
            break;
        case LayerKind::kAdd:
            y = x;
            for (std::size_t k = 1; k < layer.inputs.size(); ++k) {
                const Values& other = run.input(shard, layer, k);
                for (std::size_t e = 0; e < y.size(); ++e) y[e] = y[e] + other[e];
            }
            break;
        case LayerKind::kConcat: {
            int first = 0;
            for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
                const int width = channels_of(run, layer.inputs[k]);
                each_part(positions, layer.out.channels, first, width, y.data(), run.input(shard, layer, k).data(),
                          true);
                first += width;
            }
            break;
        }
        case LayerKind::kPadChannels:
            each_part(positions, layer.out.channels, layer.pad_before, layer.in.channels, y.data(), x.data(), true);
            break;
        case LayerKind::kLrn:
            reference::lrn(layer.lrn, positions, x.data(), y.data());
            break;
        case LayerKind::kSigmoid:
            reference::sigmoid(static_cast<int64_t>(x.size()), x.data(), y.data());
            break;
        case LayerKind::kExpand:
            for (int r = 0; r < rows; ++r) {
                std::size_t e = size(r * layer.out.elements());
                for (const ExpandColumn& column : layer.columns) {
                    const float value = x[size(int64_t{r} * layer.in.channels + column.column)];
                    if (column.width == 0) y[e++] = value;
                    for (int id = 0; id < column.width; ++id) y[e++] = value == static_cast<float>(id) ? 1.0F : 0.0F;
                }
            }
            break;
        case LayerKind::kBatchNorm:
            break;
    }
}

Run forward(const Model& model, const Samples& samples, std::span<const int64_t> sizes, const Values& weights,
            bool training, Twin twin) {
    Run run{model, samples, weights, training, twin, {sizes.begin(), sizes.end()}, {}};
    const int64_t pixels = model.layers[0].in.elements();
    int first = 0;
    for (const int64_t rows : sizes) {
        Shard& shard = run.shards.emplace_back();
        shard.first = first;
        shard.rows = static_cast<int>(rows);
        first += shard.rows;
        shard.pixels.assign(samples.pixels.begin() + shard.first * pixels, samples.pixels.begin() + first * pixels);
        for (const LayerSpec& layer : model.layers) {
            shard.outputs.emplace_back(size(rows * layer.out.elements()));
            shard.taps.emplace_back(size(rows * layer.tap_bytes()));
        }
        shard.gradients.resize(model.layers.size());
        shard.arrived.resize(model.layers.size());
        shard.moments.resize(model.layers.size());
        shard.statistics.resize(model.layers.size());
        shard.sums.resize(model.layers.size());
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        if (model.layers[i].kind == LayerKind::kBatchNorm) {
            forward_norm(run, i);
            continue;
        }
        for (Shard& shard : run.shards) {
            if (shard.rows > 0) forward_layer(run, i, shard);
        }
    }
    return run;
}

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
