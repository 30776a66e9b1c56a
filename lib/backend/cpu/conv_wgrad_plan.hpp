// Which products a convolution's weight gradient adds up, as data. For one tap of the kernel and one output row the
// terms are a run: x steps by the stride, dy by a pixel. Runs of a block of output rows make one fma chain.
//
// The gradient is kept as [(kh, kw, c_in)][c_out], c_out padded to whole vectors: a register tile holds rows of it that
// are contiguous in x.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

/// Rows [tap * tap_rows, (tap + 1) * tap_rows) of the gradient, which read x from the same places on.
struct ConvWgradTap {
    int kernel_row;  // kh: taps of one kernel row share their output rows
    int64_t x;       // from the start of the image row that kh reads to the first position's channel 0
    int first;       // output positions [first, first + count) of a row read inside the image
    int count;
};

struct ConvWgradPlan {
    SampleShape read;     // the image, or its bordered copy
    SampleShape written;  // dy
    int stride_h = 1;
    std::vector<int> vertical;  // of each kernel row: the image row that output row 0 reads, may be negative
    std::vector<ConvWgradTap> taps;
    int tap_rows = 1;
    int n = 1;           // output channels of the group
    int64_t x_step = 1;  // from one output position to the next, in x and in dy
    int64_t y_step = 1;
    int rows_per_block = 1;
    bool flat = false;            // 1 x 1 over the whole image: rows of a block are one run
    bool same_positions = false;  // every tap lies inside the image at every output position

    int64_t gradient_rows() const { return static_cast<int64_t>(taps.size()) * tap_rows; }
    int64_t blocks(int64_t samples) const { return (samples * written.height + rows_per_block - 1) / rows_per_block; }
};

/// For one group of channels. `bordered`: x is the bordered copy (gemm_plan.hpp). `kernel_rows`: a tap is a whole
/// kernel row, whose (kw, c_in) lie together in x; only without horizontal padding (or with the border), dilation and
/// groups.
ConvWgradPlan plan_conv_wgrad(const ConvShape& shape, bool bordered, bool kernel_rows);

}  // namespace lockstep
