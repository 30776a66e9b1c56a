#include "nn/double_network.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/philox.hpp"

namespace lockstep {
namespace {

using Values = std::vector<double>;

std::size_t size(int64_t n) {
    return static_cast<std::size_t>(n);
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

void conv(const ConvShape& s, const double* x, const double* w, const double* bias, double* y) {
    for (int oh = 0; oh < s.out_h(); ++oh) {
        for (int ow = 0; ow < s.out_w(); ++ow) {
            for (int o = 0; o < s.out_channels; ++o) {
                double sum = bias == nullptr ? 0 : bias[o];
                for (int kh = 0; kh < s.kernel_h; ++kh) {
                    for (int kw = 0; kw < s.kernel_w; ++kw) {
                        const int h = oh * s.stride_h - s.pad_top + kh, v = ow * s.stride_w - s.pad_left + kw;
                        if (h < 0 || h >= s.in.height || v < 0 || v >= s.in.width) continue;
                        for (int c = 0; c < s.in.channels; ++c) {
                            sum += x[(int64_t{h} * s.in.width + v) * s.in.channels + c] *
                                   w[((int64_t{o} * s.in.channels + c) * s.kernel_h + kh) * s.kernel_w + kw];
                        }
                    }
                }
                y[(int64_t{oh} * s.out_w() + ow) * s.out_channels + o] = sum;
            }
        }
    }
}

void pool(const PoolShape& s, const double* x, double* y) {
    for (int oh = 0; oh < s.out_h(); ++oh) {
        for (int ow = 0; ow < s.out_w(); ++ow) {
            for (int c = 0; c < s.in.channels; ++c) {
                double top = -INFINITY, sum = 0;
                int taps = 0;
                for (int kh = 0; kh < s.kernel_h; ++kh) {
                    for (int kw = 0; kw < s.kernel_w; ++kw) {
                        const int h = oh * s.stride_h - s.pad_top + kh, w = ow * s.stride_w - s.pad_left + kw;
                        if (h < 0 || h >= s.in.height || w < 0 || w >= s.in.width) continue;
                        const double value = x[(int64_t{h} * s.in.width + w) * s.in.channels + c];
                        top = std::fmax(top, value);
                        sum += value;
                        ++taps;
                    }
                }
                y[(int64_t{oh} * s.out_w() + ow) * s.in.channels + c] = s.kind == PoolKind::kMax ? top : sum / taps;
            }
        }
    }
}

/// Rows [first, first + rows) of positions, normalised by their own statistics.
void norm(const LayerSpec& layer, int64_t first, int64_t rows, const Values& x, const Values& weights, Values& y) {
    const int64_t channels = layer.in.channels;
    for (int64_t c = 0; c < channels; ++c) {
        const auto at = [&](int64_t r) { return size((first + r) * channels + c); };
        double mean = 0, variance = 0;
        for (int64_t r = 0; r < rows; ++r) mean += x[at(r)] / static_cast<double>(rows);
        for (int64_t r = 0; r < rows; ++r) variance += std::pow(x[at(r)] - mean, 2) / static_cast<double>(rows);
        const double inverse = 1 / std::sqrt(variance + static_cast<double>(layer.norm.epsilon));
        for (int64_t r = 0; r < rows; ++r) {
            y[at(r)] = weights[size(layer.weight + c)] * (x[at(r)] - mean) * inverse + weights[size(layer.bias + c)];
        }
    }
}

class DoubleNetwork {
  public:
    DoubleNetwork(const Model& model, const Samples& samples, std::span<const int64_t> sizes, const Values& weights)
        : model_(model), samples_(samples), sizes_(sizes), weights_(weights) {
        pixels_.assign(samples.pixels.begin(), samples.pixels.end());
        for (const LayerSpec& layer : model.layers) {
            Values y(size(samples.rows * layer.out.elements()));
            if (layer.kind == LayerKind::kBatchNorm) {
                whole(layer, y);
            } else {
                for (int r = 0; r < samples.rows; ++r) row(layer, r, y.data() + r * layer.out.elements());
            }
            outputs_.push_back(std::move(y));
        }
    }
    const Values& logits() const { return outputs_.back(); }

  private:
    const Values& input(const LayerSpec& layer, std::size_t k = 0) const {
        return layer.inputs[k] < 0 ? pixels_ : outputs_[size(layer.inputs[k])];
    }
    const double* at(int64_t offset) const { return offset < 0 ? nullptr : weights_.data() + offset; }

    void whole(const LayerSpec& layer, Values& y) const {
        const int64_t positions = int64_t{layer.in.height} * layer.in.width;
        int64_t first = 0;
        if (layer.norm.global) return norm(layer, 0, samples_.rows * positions, input(layer), weights_, y);
        for (const int64_t rows : sizes_) {
            if (rows > 0) norm(layer, first * positions, rows * positions, input(layer), weights_, y);
            first += rows;
        }
    }

    void row(const LayerSpec& layer, int r, double* y) const {
        const auto width = [&](std::size_t k) { return static_cast<int64_t>(input(layer, k).size()) / samples_.rows; };
        const double* const x = input(layer).data() + r * width(0);
        const int64_t elements = layer.out.elements();
        const int64_t channels = layer.out.channels;
        const int64_t positions = elements / channels;
        switch (layer.kind) {
            case LayerKind::kConv:
                return conv(layer.conv, x, at(layer.weight), at(layer.bias), y);
            case LayerKind::kPool:
                return pool(layer.pool, x, y);
            case LayerKind::kRelu:
                for (int64_t e = 0; e < elements; ++e) y[e] = x[e] > 0 ? x[e] : 0;
                return;
            case LayerKind::kDropout:
                for (int64_t e = 0; e < elements; ++e) y[e] = x[e] * dropout_factor(layer, samples_, r, e);
                return;
            case LayerKind::kDense:
                for (int64_t o = 0; o < channels; ++o) {
                    y[o] = std::inner_product(x, x + width(0), at(layer.weight) + o * width(0),
                                              layer.bias < 0 ? 0.0 : *at(layer.bias + o));
                }
                return;
            case LayerKind::kAdd:
                std::fill_n(y, elements, 0.0);
                for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
                    for (int64_t e = 0; e < elements; ++e) y[e] += input(layer, k)[size(r * elements + e)];
                }
                return;
            case LayerKind::kConcat: {
                int64_t first = 0;
                for (std::size_t k = 0; k < layer.inputs.size(); ++k) {
                    const int64_t part = width(k) / positions;
                    const double* const from = input(layer, k).data() + r * width(k);
                    for (int64_t p = 0; p < positions; ++p) {
                        std::copy_n(from + p * part, part, y + p * channels + first);
                    }
                    first += part;
                }
                return;
            }
            case LayerKind::kPadChannels:
                std::fill_n(y, elements, 0.0);
                for (int64_t p = 0; p < positions; ++p) {
                    std::copy_n(x + p * layer.in.channels, layer.in.channels, y + p * channels + layer.pad_before);
                }
                return;
            case LayerKind::kLrn:
                for (int64_t p = 0; p < positions; ++p) {
                    for (int64_t c = 0; c < channels; ++c) {
                        double sum = 0;
                        for (int64_t o = std::max<int64_t>(0, c - layer.lrn.radius);
                             o <= std::min<int64_t>(channels - 1, c + layer.lrn.radius); ++o) {
                            sum += std::pow(x[p * channels + o], 2);
                        }
                        y[p * channels + c] =
                            x[p * channels + c] *
                            std::pow(static_cast<double>(layer.lrn.bias) + static_cast<double>(layer.lrn.alpha) * sum,
                                     -static_cast<double>(layer.lrn.beta));
                    }
                }
                return;
            case LayerKind::kSigmoid:
                for (int64_t e = 0; e < elements; ++e) y[e] = 1 / (1 + std::exp(-x[e]));
                return;
            case LayerKind::kExpand:
                for (const ExpandColumn& column : layer.columns) {
                    const double value = x[column.column];
                    if (column.width == 0) *y++ = value;
                    for (int id = 0; id < column.width; ++id) *y++ = value == id ? 1 : 0;
                }
                return;
            case LayerKind::kBatchNorm:
                return;
        }
    }

    const Model& model_;
    const Samples& samples_;
    std::span<const int64_t> sizes_;
    const Values& weights_;
    Values pixels_;
    std::vector<Values> outputs_;
};

}  // namespace

double double_loss(const Model& model, const Samples& samples, std::span<const int64_t> sizes,
                   const std::vector<double>& weights) {
    const DoubleNetwork network(model, samples, sizes, weights);
    const auto classes = size(model.layers.back().out.channels);
    double total = 0;
    for (std::size_t r = 0; r < size(samples.rows); ++r) {
        const double* const z = network.logits().data() + r * classes;
        double sum = 0;
        for (std::size_t c = 0; c < classes; ++c) sum += std::exp(z[c]);
        total += std::log(sum) - z[samples.labels[r]];
    }
    return total;
}

}  // namespace lockstep
