// The normalisation of pixels, (x - mean) / std in fp32, for all channels or for each.
#pragma once

#include <vector>

#include "config/config.hpp"

namespace lockstep {

struct ChannelScale {
    float mean = 0.0f;
    float std = 1.0f;
    float operator()(float value) const { return (value - mean) / std; }  // two IEEE operations
};

/// One entry for all channels, or one for each. kUsage where data.mean or data.std has another number of values, or std
/// is nothing to divide by.
std::vector<ChannelScale> channel_scales(const Config::Data& data, int channels);

}  // namespace lockstep
