// What a model is made from; the trainer fills it from the config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.hpp"

namespace lockstep {

struct ModelSpec {
    std::string name = "mlp";  // mlp | lenet
    std::vector<int64_t> hidden{512, 256};
    std::vector<int64_t> channels{32, 64};
    double dropout = 0.0;
    SampleShape input;
    int classes = 10;
    uint64_t seed = 1;
};

}  // namespace lockstep
