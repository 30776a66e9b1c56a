// What one [[model.layers]] may hold; which kinds use which of them stands in nn/layer_list.cpp. Part of the key
// table: included by keys_data.hpp alone.
#pragma once

#include "config/key.hpp"
#include "config/key_ranges.hpp"

namespace lockstep {

/// Of windows: beyond any picture, and products of two stay far from the end of an int.
inline constexpr Range kWindow{.least = 1, .most = 32768};

inline constexpr TableKey kLayerKeys[] = {
    {.name = "kind",
     .type = KeyType::kString,
     .doc = "what it does",
     .choices = "conv|dense|relu|sigmoid|pool|global_pool|batch_norm|dropout|lrn|add|concat|pad_channels|flatten|"
                "residual|one_hot|embedding",
     .required = true},
    {.name = "name",
     .type = KeyType::kString,
     .doc =
         "of the layer and its tensors: letters, digits, \".\", \"_\" and \"-\"; not set: kind and number, as conv1"},
    {.name = "from",
     .type = KeyType::kStrings,
     .doc = "the layers whose outputs it reads, `input` for the samples; not set: the layer before"},
    {.name = "channels", .type = KeyType::kInteger, .doc = "conv, residual: of the output", .range = kCount},
    {.name = "units", .type = KeyType::kInteger, .doc = "dense, embedding: outputs", .range = kCount},
    {.name = "kernel", .type = KeyType::kIntegers, .doc = "conv, pool: size, or [height, width]", .range = kWindow},
    {.name = "stride",
     .type = KeyType::kIntegers,
     .doc = "conv, pool, residual: step, or [down, right]; not set: 1, of a pool its kernel",
     .range = kWindow},
    {.name = "dilation",
     .type = KeyType::kIntegers,
     .doc = "conv: distance of taps, or [down, right]",
     .range = kWindow},
    {.name = "groups", .type = KeyType::kInteger, .doc = "conv: parts that the channels are cut into", .range = kCount},
    {.name = "padding",
     .type = KeyType::kString,
     .doc =
         "conv, pool: same: ceil(size / stride) places, an odd row or column of padding below and right; valid: none; "
         "not set: same for a conv, valid for a pool",
     .choices = "same|valid"},
    {.name = "pad",
     .type = KeyType::kIntegers,
     .doc = "conv, pool: rows and columns of padding instead, or [top, bottom, left, right]",
     .range = {.least = 0, .most = 32768}},
    {.name = "bias", .type = KeyType::kBool, .doc = "conv, dense: whether it has one; not set: true without `norm`"},
    {.name = "norm", .type = KeyType::kBool, .doc = "conv, dense: batch norm behind it"},
    {.name = "activation",
     .type = KeyType::kString,
     .doc = "conv, dense, batch_norm, add: behind it",
     .choices = "none|relu|sigmoid"},
    {.name = "deviation",
     .type = KeyType::kNumber,
     .doc = "conv, dense, embedding: standard deviation of the initial weights; not set: sqrt(1 / (3 inputs)), with "
            "batch norm sqrt(2 / inputs), of an embedding sqrt(1 / units)",
     .range = kNotNegative},
    {.name = "bias_value", .type = KeyType::kNumber, .doc = "conv, dense: initial bias; not set: 0"},
    {.name = "mode", .type = KeyType::kString, .doc = "pool: max; global_pool: average", .choices = "max|average"},
    {.name = "rate",
     .type = KeyType::kNumber,
     .doc = "dropout: share of values set to 0 while training",
     .range = kBelowOne},
    {.name = "radius",
     .type = KeyType::kInteger,
     .doc = "lrn: channels on each side; not set: 4",
     .range = kCountOrZero},
    {.name = "alpha",
     .type = KeyType::kNumber,
     .doc = "lrn: times the sum of squares; not set: 0.001 / 9",
     .range = kNotNegative},
    {.name = "beta", .type = KeyType::kNumber, .doc = "lrn: the exponent; not set: 0.75", .range = kNotNegative},
    {.name = "offset", .type = KeyType::kNumber, .doc = "lrn: added to the sum; not set: 1", .range = kPositive},
    {.name = "before",
     .type = KeyType::kInteger,
     .doc = "pad_channels: channels of zeros in front",
     .range = kCountOrZero},
    {.name = "behind",
     .type = KeyType::kInteger,
     .doc = "pad_channels: channels of zeros behind",
     .range = kCountOrZero},
    {.name = "block",
     .type = KeyType::kString,
     .doc = "residual: two 3x3 convolutions, or 1x1, 3x3 and 1x1 with a quarter of the channels inside; not set: basic",
     .choices = "basic|bottleneck"},
    {.name = "columns", .type = KeyType::kStrings, .doc = "one_hot, embedding: the columns read; not set: all"},
};

}  // namespace lockstep
