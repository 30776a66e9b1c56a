// What a convolution's kernels are told, worked out once on the host: which taps a written pixel has and where they
// read, where the sums are cut, and which tile covers the outputs. Pure functions of shapes and of the device's size.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/kernels/conv.h"

namespace lockstep {

struct ConvPassPlan {
    ConvPass pass;
    std::vector<ConvClass> classes;
    std::vector<int2> blocks;
    std::vector<int4> taps;
    std::vector<int32_t> tap_places;  // of tap kh * kernel_w + kw among the taps of all classes; -1: no pixel has it
};

/// Forward (x -> y), or the data gradient (dy -> dx). `direct`: for the kernels of groups of few channels.
ConvPassPlan plan_conv_pass(const ConvShape& shape, bool backward, bool direct);

/// Groups of so few channels that tiles of a matrix product would be mostly empty.
bool conv_is_direct(const ConvShape& shape);

/// Throws kUsage where a run of `rows` samples has more numbers than the kernels' counters.
void check_conv_rows(const ConvShape& shape, int rows);

/// The tile for `products` independent products of rows x columns outputs on so many multiprocessors. Decides speed and
/// never a bit.
ConvTile choose_conv_tile(int64_t rows, int columns, int64_t products, int multiprocessors);

/// How the weight gradient of a shard of `rows` samples is cut.
struct ConvWeightsPlan {
    ConvTile tile = ConvTile::k32x32;
    int rows_per_block = 1;
    int blocks = 1;
    bool in_order = false;   // the weights alone fill the device, or there is one block: no parts in scratch memory
    int blocks_at_once = 1;  // otherwise, so that parts stay within the limit
};
ConvWeightsPlan plan_conv_weights(const ConvShape& shape, int rows, int multiprocessors, int64_t most_part_floats);

}  // namespace lockstep
