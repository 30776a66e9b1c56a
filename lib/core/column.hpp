// One column of a tabular sample: a number, or a category by its id.
#pragma once

#include <string>

namespace lockstep {

struct Column {
    std::string name;
    int categories = 0;  // 0: a number; else the value is an id 0 … categories-1 (exact in fp32), or -1 for none
    int embedding = 0;   // width of its embedding in the deep part of a network; 0: one-hot
    bool wide = true;    // whether the linear part of wide & deep reads it
    bool deep = true;    // whether the deep part does
    bool operator==(const Column&) const = default;
};

}  // namespace lockstep
