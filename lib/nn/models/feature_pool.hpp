// The pooling between torchvision's features and classifier, which makes maps of any size one size.
#pragma once

#include "nn/builder.hpp"

namespace lockstep {

/// Averages to size x size; nothing where the map has it. Its windows are all of one size here, so that the map must be
/// a multiple of it.
inline void pool_features(Builder& builder, const std::string& name, int size) {
    const SampleShape map = builder.shape();
    if (map.height == size && map.width == size) return;
    if (map.height < size || map.width < size || map.height % size != 0 || map.width % size != 0) {
        builder.refuse(name, fmt::format("averages {} to {}x{}, which only multiples of it can be", Builder::text(map),
                                         size, size));
    }
    const int height = map.height / size, width = map.width / size;
    builder.average_pool(name, {.kernel_h = height, .kernel_w = width, .stride_h = height, .stride_w = width});
}

}  // namespace lockstep
