// What a model is made from; the trainer fills it from the config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config_table.hpp"
#include "core/column.hpp"
#include "core/shape.hpp"

namespace lockstep {

struct ModelSpec {
    std::string name = "mlp";
    std::string flavor = "lockstep";  // lockstep | tf | torchvision
    std::vector<int64_t> hidden{512, 256};
    std::vector<int64_t> channels{32, 64};
    double dropout = 0.0;
    SampleShape input;
    int classes = 10;
    uint64_t seed = 1;
    std::string loss = "softmax";  // softmax | sigmoid (two classes, one logit) | mse (one output)
    double label_smoothing = 0;    // softmax
    bool global_norm = false;      // batch_norm.scope
    double norm_momentum = 0.9, norm_epsilon = 1e-5;
    bool norm_unbiased = false;
    std::vector<Column> columns;      // of tabular samples; empty: pixels or plain numbers
    std::vector<ConfigTable> layers;  // custom: [[model.layers]]
};

}  // namespace lockstep
