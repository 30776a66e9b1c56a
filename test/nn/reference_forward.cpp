// The forward half of reference_network.hpp, and the moments of all shards.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_gemm.hpp"
#include "backend/cpu/reference_loss.hpp"
#include "backend/cpu/reference_norm.hpp"
#include "core/philox.hpp"
#include "nn/reference_run.hpp"

namespace lockstep::reference_run {

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

static void forward_norm(Run& run, std::size_t i) {
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

int channels_of(const Run& run, int input) {
    return input < 0 ? run.model.layers[0].in.channels : run.model.layers[size(input)].out.channels;
}

static void forward_layer(const Run& run, std::size_t i, Shard& shard) {
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

}  // namespace lockstep::reference_run
