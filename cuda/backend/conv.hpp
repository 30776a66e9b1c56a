// Convolutions of defined arithmetic on a GPU, with the choices that decide speed open to tests.
#pragma once

#include <optional>

#include "cuda/backend/cuda_context.hpp"
#include "cuda/kernels/conv.h"

namespace lockstep {

/// What is not given is chosen by shape and device. No choice changes a bit.
struct ConvTuning {
    std::optional<ConvTile> tile;
    std::optional<bool> weights_in_order;  // each thread adds up all blocks of the weight gradient itself
    int64_t most_part_floats = 16 << 20;   // of blocks of a weight gradient at once, for each stream
};

std::unique_ptr<Conv> make_cuda_conv(CudaContext& context, const ConvShape& shape, bool relu, bool backward_data,
                                     const ConvTuning& tuning);

}  // namespace lockstep
