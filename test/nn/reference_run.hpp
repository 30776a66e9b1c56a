// A pass over all shards as plain values: what reference_forward.cpp fills and reference_network.cpp goes back over.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/canonical_tree.hpp"
#include "nn/reference_network.hpp"

namespace lockstep::reference_run {

using Values = std::vector<float>;

inline std::size_t size(int64_t n) {
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

inline int64_t positions_of(const LayerSpec& layer) {
    return int64_t{layer.in.height} * layer.in.width;
}
int64_t all_samples(const Run& run);
int channels_of(const Run& run, int input);
/// Merged moments of the shards that `sizes` counts.
Values whole_moments(const Run& run, std::size_t i, std::span<const int64_t> sizes);
/// Dropout of a layer's output, or of its gradient, in place.
void drop(const Run& run, const LayerSpec& layer, const Shard& shard, float* values);
Run forward(const Model& model, const Samples& samples, std::span<const int64_t> sizes, const Values& weights,
            bool training, Twin twin);

}  // namespace lockstep::reference_run
