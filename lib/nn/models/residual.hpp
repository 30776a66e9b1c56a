// One residual block (He et al. 2015): convolutions with batch norm beside a shortcut, added, then relu.
#pragma once

#include "nn/builder.hpp"

namespace lockstep {

struct ResidualBlock {
    enum class Kind { kBasic, kBottleneck } kind = Kind::kBasic;
    enum class Shortcut {
        kProjection,  // where shapes differ: a 1x1 convolution with batch norm
        kPadded,      // every stride-th place, and channels of zeros, half on each side
    } shortcut = Shortcut::kProjection;
    int channels = 0;  // of the output; of a bottleneck a quarter inside
    int stride = 1;
    bool stride_first = false;  // bottleneck: in the first 1x1 convolution (v1), not in the 3x3 (v1.5)
    bool same = false;          // a strided 3x3 is padded as TensorFlow's SAME, not 1 on each side
};

/// Names as torchvision's: "<name>.conv1.weight", "<name>.bn1.weight", …, "<name>.downsample.0.weight".
int residual_block(Builder& builder, const std::string& name, const ResidualBlock& block);

}  // namespace lockstep
