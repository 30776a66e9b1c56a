#include "nn/reference_network.hpp"

#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_gemm.hpp"
#include "core/philox.hpp"

namespace lockstep {
namespace {

std::size_t size(int64_t n) {
    return static_cast<std::size_t>(n);
}

void drop(const LayerSpec& layer, const Samples& samples, int first, int rows, Twin twin, float* values) {
    const double p = layer.dropout.probability;
    const DropoutKey& key = layer.dropout;
    const DropoutMask mask{
        RandomStream(key.seed, Purpose::kDropout, key.layer, static_cast<uint32_t>(samples.epoch)).key(),
        static_cast<uint32_t>(std::floor(p * 4294967296.0)), static_cast<float>(1.0 / (1.0 - p))};
    const int64_t elements = layer.out.elements();
    for (int r = 0; r < rows; ++r) {
        const int64_t position = twin == Twin::kDropoutByLocalRow ? r : samples.positions[size(first + r)];
        reference::dropout_row(mask, position, 0, elements, values + r * elements, values + r * elements);
    }
}

struct Activations {
    std::vector<std::vector<float>> values;  // [0]: pixels; [i + 1]: output of layer i
    std::vector<std::vector<uint8_t>> taps;
};

Activations forward(const Model& model, const Samples& samples, int first, int rows, const std::vector<float>& weights,
                    bool training, Twin twin) {
    Activations all;
    const int64_t pixels = model.layers[0].in.elements();
    all.values.emplace_back(samples.pixels.begin() + first * pixels, samples.pixels.begin() + (first + rows) * pixels);
    for (const LayerSpec& layer : model.layers) {
        const std::vector<float>& x = all.values.back();
        std::vector<float> y(size(rows * layer.out.elements()));
        std::vector<uint8_t> taps(size(rows * layer.tap_bytes()));
        const float* const w = weights.data() + layer.weight;
        const float* const bias = weights.data() + layer.bias;
        switch (layer.kind) {
            case LayerKind::kConv:
                reference_conv_forward(layer.conv, rows, x.data(), w, bias, false, y.data());
                break;
            case LayerKind::kPool:
                reference::max_pool_forward(layer.pool, 0, rows * layer.out.height, x.data(), y.data(), taps.data());
                break;
            case LayerKind::kRelu:
                reference::relu(static_cast<int64_t>(x.size()), x.data(), y.data());
                break;
            case LayerKind::kDropout:
                y = x;
                if (training) drop(layer, samples, first, rows, twin, y.data());
                break;
            case LayerKind::kDense:
                reference_dense_forward(rows, static_cast<int>(layer.in.elements()), layer.out.channels, x.data(), w,
                                        bias, false, y.data());
                break;
        }
        all.values.push_back(std::move(y));
        all.taps.push_back(std::move(taps));
    }
    return all;
}

/// Weight gradients of one shard, added to nothing.
void weight_gradient(const LayerSpec& layer, int rows, const float* x, const float* dy, std::vector<float>& gradient) {
    float* const dw = gradient.data() + layer.weight;
    float* const db = gradient.data() + layer.bias;
    const int out = layer.out.channels;
    if (layer.kind == LayerKind::kConv) {
        reference_conv_weight_gradient(layer.conv, rows, {0, out}, x, dy, dw);
        reference_channel_sums(int64_t{rows} * layer.out.height * layer.out.width, out, dy, db);
        return;
    }
    const std::vector<int64_t> sizes{rows};
    const FoldProgram one = fold_program(1, {0, 1}, sizes);
    reference_dense_weight_gradient(one, static_cast<int>(layer.in.elements()), out, {0, out}, x, dy, {&dw, 1});
    reference_dense_bias_gradient(one, out, {0, out}, dy, {&db, 1});
}

StepSums shard_sums(const Model& model, const Samples& samples, int first, int rows, const std::vector<float>& weights,
                    Twin twin) {
    const Activations all = forward(model, samples, first, rows, weights, true, twin);
    StepSums sums;
    sums.gradient.assign(size(model.parameters.flat_elements()), 0.0F);
    std::vector<float> losses(size(rows)), dy(all.values.back().size());
    reference::softmax_cross_entropy(rows, model.layers.back().out.channels, all.values.back().data(),
                                     samples.labels.data() + first, losses.data(), dy.data());
    for (const float loss : losses) sums.loss = sums.loss + loss;
    for (std::size_t i = model.layers.size(); i-- > 0;) {
        const LayerSpec& layer = model.layers[i];
        const std::vector<float>& x = all.values[i];
        if (layer.has_weights()) weight_gradient(layer, rows, x.data(), dy.data(), sums.gradient);
        std::vector<float> dx(x.size());
        const float* const w = weights.data() + layer.weight;
        switch (layer.kind) {
            case LayerKind::kConv:
                reference_conv_backward_data(layer.conv, rows, dy.data(), w, dx.data());
                break;
            case LayerKind::kPool:
                reference::max_pool_backward(layer.pool, 0, rows * layer.in.height, dy.data(), all.taps[i].data(),
                                             nullptr, dx.data());
                break;
            case LayerKind::kRelu:
                dx = dy;
                reference::relu_backward(static_cast<int64_t>(dx.size()), all.values[i + 1].data(), dx.data());
                break;
            case LayerKind::kDropout:
                dx = dy;
                drop(layer, samples, first, rows, twin, dx.data());
                break;
            case LayerKind::kDense:
                reference_dense_backward_data(rows, static_cast<int>(layer.in.elements()), layer.out.channels,
                                              dy.data(), w, dx.data());
                break;
        }
        dy = std::move(dx);
    }
    return sums;
}

void add_right(StepSums& left, const StepSums& right) {
    left.loss = left.loss + right.loss;
    for (std::size_t i = 0; i < left.gradient.size(); ++i) left.gradient[i] = left.gradient[i] + right.gradient[i];
}

/// The canonical tree over [lo, hi); false where all of it is empty.
bool tree(const std::vector<StepSums>& shards, std::span<const int64_t> sizes, int lo, int hi, StepSums& out) {
    if (hi - lo == 1) {
        if (sizes[size(lo)] == 0) return false;
        out = shards[size(lo)];
        return true;
    }
    const int middle = split_point(lo, hi);
    StepSums right;
    const bool has_left = tree(shards, sizes, lo, middle, out);
    const bool has_right = tree(shards, sizes, middle, hi, has_left ? right : out);
    if (has_left && has_right) add_right(out, right);
    return has_left || has_right;
}

/// Random bits >= threshold are kept: the factor of one element.
double dropout_factor(const LayerSpec& layer, const Samples& samples, int row, int64_t element) {
    const DropoutKey& key = layer.dropout;
    const RandomStream stream(key.seed, Purpose::kDropout, key.layer, static_cast<uint32_t>(samples.epoch));
    const double p = key.probability;
    const uint32_t bits =
        stream.bits(static_cast<uint64_t>(element), static_cast<uint64_t>(samples.positions[size(row)]));
    return bits >= std::floor(p * 4294967296.0) ? 1.0 / (1.0 - p) : 0.0;
}

std::vector<double> double_conv(const ConvShape& s, const std::vector<double>& x, const double* w, const double* bias) {
    std::vector<double> y(size(s.out().elements()));
    for (int oh = 0; oh < s.out_h(); ++oh) {
        for (int ow = 0; ow < s.out_w(); ++ow) {
            for (int o = 0; o < s.out_channels; ++o) {
                double sum = bias[o];
                for (int kh = 0; kh < s.kernel_h; ++kh) {
                    for (int kw = 0; kw < s.kernel_w; ++kw) {
                        const int h = oh - s.pad_top + kh, v = ow - s.pad_left + kw;
                        if (h < 0 || h >= s.in.height || v < 0 || v >= s.in.width) continue;
                        for (int c = 0; c < s.in.channels; ++c) {
                            sum += x[size((int64_t{h} * s.in.width + v) * s.in.channels + c)] *
                                   w[((int64_t{o} * s.in.channels + c) * s.kernel_h + kh) * s.kernel_w + kw];
                        }
                    }
                }
                y[size((int64_t{oh} * s.out_w() + ow) * s.out_channels + o)] = sum;
            }
        }
    }
    return y;
}

std::vector<double> double_max_pool(const PoolShape& s, const std::vector<double>& x) {
    std::vector<double> y(size(s.out().elements()));
    for (int oh = 0; oh < s.out_h(); ++oh) {
        for (int ow = 0; ow < s.out_w(); ++ow) {
            for (int c = 0; c < s.in.channels; ++c) {
                double top = -INFINITY;
                for (int kh = 0; kh < s.kernel_h; ++kh) {
                    for (int kw = 0; kw < s.kernel_w; ++kw) {
                        const int h = oh * s.stride_h + kh, w = ow * s.stride_w + kw;
                        top = std::fmax(top, x[size((int64_t{h} * s.in.width + w) * s.in.channels + c)]);
                    }
                }
                y[size((int64_t{oh} * s.out_w() + ow) * s.in.channels + c)] = top;
            }
        }
    }
    return y;
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
                        const std::vector<float>& weights, Twin twin) {
    std::vector<StepSums> shards;
    int first = 0;
    for (const int64_t rows : sizes) {
        shards.emplace_back();
        if (rows > 0) shards.back() = shard_sums(model, samples, first, static_cast<int>(rows), weights, twin);
        first += static_cast<int>(rows);
    }
    StepSums total;
    if (twin != Twin::kLeftToRight) {
        tree(shards, sizes, 0, static_cast<int>(sizes.size()), total);
        return total;
    }
    for (std::size_t v = 0; v < shards.size(); ++v) {
        if (sizes[v] == 0) continue;
        if (total.gradient.empty())
            total = shards[v];
        else
            add_right(total, shards[v]);
    }
    return total;
}

std::vector<float> reference_logits(const Model& model, const Samples& samples, const std::vector<float>& weights) {
    return forward(model, samples, 0, samples.rows, weights, false, Twin::kNone).values.back();
}

double double_loss(const Model& model, const Samples& samples, const std::vector<double>& weights) {
    double total = 0;
    const int64_t pixels = model.layers[0].in.elements();
    for (int r = 0; r < samples.rows; ++r) {
        std::vector<double> x(samples.pixels.begin() + r * pixels, samples.pixels.begin() + (r + 1) * pixels);
        for (const LayerSpec& layer : model.layers) {
            const double* const w = weights.data() + layer.weight;
            const double* const bias = weights.data() + layer.bias;
            if (layer.kind == LayerKind::kConv) x = double_conv(layer.conv, x, w, bias);
            if (layer.kind == LayerKind::kPool) x = double_max_pool(layer.pool, x);
            if (layer.kind == LayerKind::kRelu) {
                for (double& value : x) value = value > 0 ? value : 0;
            }
            if (layer.kind == LayerKind::kDropout) {
                for (std::size_t e = 0; e < x.size(); ++e)
                    x[e] *= dropout_factor(layer, samples, r, static_cast<int64_t>(e));
            }
            if (layer.kind == LayerKind::kDense) {
                std::vector<double> y(size(layer.out.channels));
                for (std::size_t o = 0; o < y.size(); ++o) {
                    y[o] = std::inner_product(x.begin(), x.end(), w + o * x.size(), bias[o]);
                }
                x = std::move(y);
            }
        }
        double sum = 0;
        for (const double z : x) sum += std::exp(z);
        total += std::log(sum) - x[size(samples.labels[size(r)])];
    }
    return total;
}

}  // namespace lockstep
