#include "cuda/backend/conv_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "backend/cpu/reference_gemm.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int kFewChannels = 4;

// One axis of a class: its pixels, and its taps in the order of the sum.
struct AxisTap {
    int k;       // kh or kw
    int place;   // in the index of the sum
    int offset;  // in what is read, from the pixel's base
};
struct AxisClass {
    int first = 0, count = 0, base = 0;
    std::vector<AxisTap> taps;
};
struct Axis {
    int read_step = 1, written_step = 1;
    std::vector<AxisClass> classes;
};

Axis forward_axis(int out, int kernel, int stride, int dilation, int pad) {
    AxisClass all{0, out, -pad, {}};
    for (int k = 0; k < kernel; ++k) all.taps.push_back({k, k, k * dilation});
    return {stride, 1, {all}};
}

// Tap k of output (i + pad - k dilation) / stride reads input i, where that is whole: classes are the remainders of
// i + pad. The highest tap comes first, so that output positions ascend.
Axis backward_axis(int in, int kernel, int stride, int dilation, int pad) {
    Axis axis{1, stride, {}};
    for (int remainder = 0; remainder < stride; ++remainder) {
        AxisClass cls;
        cls.first = ((remainder - pad) % stride + stride) % stride;
        if (cls.first >= in) continue;
        cls.count = (in - cls.first + stride - 1) / stride;
        cls.base = (cls.first + pad) / stride;
        for (int k = kernel - 1; k >= 0; --k) {
            if (k * dilation % stride == remainder) cls.taps.push_back({k, kernel - 1 - k, -(k * dilation / stride)});
        }
        axis.classes.push_back(cls);
    }
    return axis;
}

// Appends a class's terms and cuts them where their index in the sum passes a multiple of the chain's length.
void add_class(const ConvShape& shape, const AxisClass& h, const AxisClass& w, ConvPassPlan& plan) {
    const ConvPass& pass = plan.pass;
    ConvClass cls{h.first, w.first, h.count, w.count, h.base, w.base, static_cast<int>(plan.blocks.size()), 0};
    int64_t block = -1;
    for (const AxisTap& row : h.taps) {
        for (const AxisTap& column : w.taps) {
            plan.tap_places[static_cast<std::size_t>(row.k * shape.kernel_w + column.k)] =
                static_cast<int32_t>(plan.taps.size()) / pass.depth;
            const int64_t index = (int64_t{row.place} * shape.kernel_w + column.place) * pass.depth;
            const int64_t from = (int64_t{row.offset} * pass.read_w + column.offset) * pass.read_c;
            for (int c = 0; c < pass.depth; ++c) {
                const auto term = static_cast<int>(plan.taps.size());
                if ((index + c) / kChainTerms != block) {
                    block = (index + c) / kChainTerms;
                    plan.blocks.push_back({term, term});
                }
                plan.taps.push_back({row.offset, column.offset, static_cast<int>(from + c), 0});
                plan.blocks.back().y = term + 1;
            }
        }
    }
    if (block < 0) plan.blocks.push_back({0, 0});  // no taps: a sum without terms
    cls.blocks_end = static_cast<int>(plan.blocks.size());
    plan.classes.push_back(cls);
}

struct TileSpeed {
    ConvTile tile;
    int threads, blocks;  // of a multiprocessor
    double efficiency;    // an estimate from the loads that a product takes
};
constexpr std::array<TileSpeed, 6> kTileSpeeds{{
    {ConvTile::k128x128, 256, 2, 1.0},
    {ConvTile::k128x64, 128, 3, 0.95},
    {ConvTile::k64x64, 128, 4, 0.85},
    {ConvTile::k128x32, 128, 4, 0.8},
    {ConvTile::k128x16, 128, 5, 0.6},
    {ConvTile::k32x32, 64, 8, 0.55},
}};
constexpr double kBusyThreads = 256;  // of a multiprocessor, that hide each other's waits

int64_t ceil_div(int64_t n, int64_t d) {
    return (n + d - 1) / d;
}

}  // namespace

bool conv_is_direct(const ConvShape& shape) {
    return shape.groups > 1 &&
           std::min(shape.in.channels / shape.groups, shape.out_channels / shape.groups) < kFewChannels;
}

ConvPassPlan plan_conv_pass(const ConvShape& shape, bool backward, bool direct) {
    const SampleShape read = backward ? shape.out() : shape.in, written = backward ? shape.in : shape.out();
    const Axis h = backward
                       ? backward_axis(shape.in.height, shape.kernel_h, shape.stride_h, shape.dilation_h, shape.pad_top)
                       : forward_axis(shape.out_h(), shape.kernel_h, shape.stride_h, shape.dilation_h, shape.pad_top);
    const Axis w = backward
                       ? backward_axis(shape.in.width, shape.kernel_w, shape.stride_w, shape.dilation_w, shape.pad_left)
                       : forward_axis(shape.out_w(), shape.kernel_w, shape.stride_w, shape.dilation_w, shape.pad_left);
    ConvPassPlan plan;
    plan.tap_places.assign(static_cast<std::size_t>(shape.kernel_h * shape.kernel_w), -1);
    ConvPass& pass = plan.pass;
    pass.read_h = read.height;
    pass.read_w = read.width;
    pass.read_c = read.channels;
    pass.written_h = written.height;
    pass.written_w = written.width;
    pass.written_c = written.channels;
    pass.groups = shape.groups;
    pass.depth = read.channels / shape.groups;
    pass.columns = written.channels / shape.groups;
    pass.read_step_h = h.read_step;
    pass.read_step_w = w.read_step;
    pass.written_step_h = h.written_step;
    pass.written_step_w = w.written_step;
    pass.panel = static_cast<int>(ceil_div(direct ? pass.written_c : pass.columns, 4) * 4);
    for (const AxisClass& row : h.classes) {
        for (const AxisClass& column : w.classes) {
            pass.class_pixels = std::max(pass.class_pixels, row.count * column.count);
            add_class(shape, row, column, plan);
        }
    }
    pass.classes = static_cast<int>(plan.classes.size());
    pass.blocks = static_cast<int>(plan.blocks.size());
    pass.terms = static_cast<int>(plan.taps.size());
    return plan;
}

void check_conv_rows(const ConvShape& shape, int rows) {
    constexpr int64_t kMost = 1 << 30;
    // A tap may start anywhere in the image with its border.
    const int64_t pixels = (int64_t{shape.in.height} + shape.pad_top + shape.pad_bottom) *
                           (int64_t{shape.in.width} + shape.pad_left + shape.pad_right);
    const int64_t channels = std::max(shape.in.channels, shape.out_channels);
    // Packed weights have up to 3 zeros behind each row of a group.
    const int64_t weights = shape.weights() + int64_t{3} * shape.kernel_h * shape.kernel_w * channels;
    if (rows * pixels > kMost || pixels * channels > kMost || weights > kMost) {
        fail(ErrorKind::kUsage,
             "convolution: {} samples of {} x {} x {}, border included, and {} weights: at most 2^30 pixels at a time, "
             "elements of a sample, and weights",
             rows, shape.in.height + shape.pad_top + shape.pad_bottom,
             shape.in.width + shape.pad_left + shape.pad_right, channels, shape.weights());
    }
}

ConvTile choose_conv_tile(int64_t rows, int columns, int64_t products, int multiprocessors) {
    ConvTile best = ConvTile::k32x32;
    double least = std::numeric_limits<double>::infinity();
    for (const TileSpeed& speed : kTileSpeeds) {
        const ConvTileShape shape = conv_tile_shape(speed.tile);
        const int64_t tiles = ceil_div(rows, shape.rows) * ceil_div(columns, shape.columns) * products;
        const int64_t turns = ceil_div(tiles, std::max(1, multiprocessors));  // of the busiest multiprocessor
        const double threads = static_cast<double>(std::min<int64_t>(turns, speed.blocks) * speed.threads);
        const double time = static_cast<double>(turns * shape.rows * shape.columns) /
                            (speed.efficiency * std::min(1.0, threads / kBusyThreads));
        if (time < least) {
            least = time;
            best = speed.tile;
        }
    }
    return best;
}

ConvWeightsPlan plan_conv_weights(const ConvShape& shape, int rows, int multiprocessors, int64_t most_part_floats) {
    ConvWeightsPlan plan;
    const int64_t terms = int64_t{shape.kernel_h} * shape.kernel_w * (shape.in.channels / shape.groups);
    const int columns = shape.out_channels / shape.groups;
    plan.rows_per_block = conv_rows_per_block(shape.out_w());
    plan.blocks = static_cast<int>(ceil_div(int64_t{rows} * shape.out_h(), plan.rows_per_block));
    const int64_t products = int64_t{shape.groups} * plan.blocks;
    plan.tile = choose_conv_tile(terms, columns, products, multiprocessors);
    const ConvTile alone = choose_conv_tile(terms, columns, shape.groups, multiprocessors);
    const ConvTileShape size = conv_tile_shape(alone);
    const int64_t tiles = ceil_div(terms, size.rows) * ceil_div(columns, size.columns) * shape.groups;
    plan.in_order = plan.blocks == 1 || (!conv_is_direct(shape) && size.rows >= 64 && tiles >= multiprocessors);
    if (plan.in_order) plan.tile = alone;
    plan.blocks_at_once = static_cast<int>(std::clamp<int64_t>(most_part_floats / shape.weights(), 1, plan.blocks));
    return plan;
}

}  // namespace lockstep
