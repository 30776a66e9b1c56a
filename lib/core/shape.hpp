// The shape of one sample: height x width x channels, channels fastest (NHWC everywhere, on every backend).
#pragma once

#include <cstdint>

namespace lockstep {

struct SampleShape {
    int height = 1;
    int width = 1;
    int channels = 1;
    int64_t elements() const { return int64_t{height} * width * channels; }
    bool operator==(const SampleShape&) const = default;
};

}  // namespace lockstep
