#include "backend/cpu/gemm_plan.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "backend/cpu/reference_gemm.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int64_t kGroupBytes = 256 * 1024;  // of A: what a group of samples may take of the second-level cache

// One axis of a convolution: for each position of the axis that is written, where its taps start in the axis that is
// read and which taps exist.
struct Tap {
    int k;       // place in the order of the index
    int offset;  // in the axis that is read, from the position's base
    bool operator==(const Tap&) const = default;
};
struct Axis {
    std::vector<int> base;  // of each position
    std::vector<int> cls;   // of each position: which list of taps
    std::vector<std::vector<Tap>> taps;

    void add(int position_base, std::vector<Tap> position_taps) {
        base.push_back(position_base);
        const auto found = std::find(taps.begin(), taps.end(), position_taps);
        cls.push_back(static_cast<int>(found - taps.begin()));
        if (found == taps.end()) taps.push_back(std::move(position_taps));
    }
};

Axis forward_axis(int out, int in, int kernel, int stride, int dilation, int pad) {
    Axis axis;
    for (int o = 0; o < out; ++o) {
        const int base = o * stride - pad;
        std::vector<Tap> taps;
        for (int k = 0; k < kernel; ++k) {
            const int i = base + k * dilation;
            if (i >= 0 && i < in) taps.push_back({k, k * dilation});
        }
        axis.add(base, std::move(taps));
    }
    return axis;
}

// Input position i is read by tap k of output (i + pad - k dilation) / stride, where that is whole and inside: the
// highest tap comes first, so that output positions ascend.
Axis backward_axis(int out, int in, int kernel, int stride, int dilation, int pad) {
    Axis axis;
    for (int i = 0; i < in; ++i) {
        const int base = (i + pad) / stride;
        std::vector<Tap> taps;
        for (int k = kernel - 1; k >= 0; --k) {
            const int shifted = i + pad - k * dilation;
            if (shifted < 0 || shifted % stride != 0 || shifted / stride >= out) continue;
            taps.push_back({kernel - 1 - k, shifted / stride - base});
        }
        axis.add(base, std::move(taps));
    }
    return axis;
}

// Joins runs that continue each other, then cuts at the borders of the blocks.
GemmClass make_class(std::span<const GemmSegment> terms, const GemmPlan& plan) {
    std::vector<GemmSegment> joined;
    for (const GemmSegment& term : terms) {
        if (!joined.empty()) {
            GemmSegment& last = joined.back();
            if (last.a + last.length == term.a && last.k + last.length == term.k) {
                last.length += term.length;
                continue;
            }
        }
        joined.push_back(term);
    }
    GemmClass cls;
    int64_t total = 0;
    for (GemmSegment rest : joined) {
        total += rest.length;
        while (rest.length > 0) {
            const int32_t length = std::min(rest.length, (rest.k / plan.chain + 1) * plan.chain - rest.k);
            cls.segments.push_back({rest.a, rest.k, length});
            rest = {rest.a + length, rest.k + length, rest.length - length};
        }
    }
    std::size_t next = 0;
    for (int block = 0; block < plan.blocks; ++block) {
        cls.block_begin.push_back(static_cast<int32_t>(next));
        while (next < cls.segments.size() && cls.segments[next].k / plan.chain == block) ++next;
    }
    cls.block_begin.push_back(static_cast<int32_t>(next));
    if (!cls.segments.empty()) {
        cls.first_block = cls.segments.front().k / plan.chain;
        cls.last_block = cls.segments.back().k / plan.chain;
    }
    // Segments of less than 16 terms cost more to start than a table of offsets costs to read.
    if (plan.blocks == 1 && total == plan.k && static_cast<int64_t>(cls.segments.size()) * 16 > plan.k) {
        for (const GemmSegment& segment : cls.segments) {
            for (int32_t i = 0; i < segment.length; ++i) cls.offsets.push_back(segment.a + i);
        }
    }
    return cls;
}

// Tiles of nearly equal height over rows [first, group.a.size()): one of 1 row after ten of 8 would run at an eighth.
void add_tiles(GemmGroup& group, int first, int cls, int tile_rows) {
    const int rows = static_cast<int>(group.a.size()) - first;
    const int tiles = (rows + tile_rows - 1) / tile_rows;
    int row = first;
    for (int tile = 0; tile < tiles; ++tile) {
        const int left = tiles - tile;
        const int height = (first + rows - row + left - 1) / left;
        group.tiles.push_back({row, height, cls});
        row += height;
    }
}

GemmPlan start_plan(int64_t k, int n) {
    GemmPlan plan;
    plan.k = static_cast<int>(k);
    plan.n = n;
    plan.chain = kChainTerms;
    plan.blocks = std::max(1, (plan.k + plan.chain - 1) / plan.chain);
    return plan;
}

// The extents of one plan: what is read (A) and what is written (C), with the channels of one group of the convolution.
struct ConvExtents {
    SampleShape read;
    SampleShape written;
    int group_read;  // channels of the group in A
    int kernel_w;
};

GemmGroup conv_group(const ConvExtents& e, const Axis& rows, const Axis& columns, int samples, int tile_rows) {
    GemmGroup group;
    for (std::size_t row_cls = 0; row_cls < rows.taps.size(); ++row_cls) {
        for (std::size_t column_cls = 0; column_cls < columns.taps.size(); ++column_cls) {
            const int first = static_cast<int>(group.a.size());
            for (int64_t n = 0; n < samples; ++n) {
                for (int h = 0; h < e.written.height; ++h) {
                    if (rows.cls[static_cast<std::size_t>(h)] != static_cast<int>(row_cls)) continue;
                    const int64_t read_row = n * e.read.height + rows.base[static_cast<std::size_t>(h)];
                    const int64_t written_row = n * e.written.height + h;
                    for (int w = 0; w < e.written.width; ++w) {
                        if (columns.cls[static_cast<std::size_t>(w)] != static_cast<int>(column_cls)) continue;
                        const int64_t read = read_row * e.read.width + columns.base[static_cast<std::size_t>(w)];
                        group.a.push_back(static_cast<int32_t>(read * e.read.channels));
                        group.c.push_back(
                            static_cast<int32_t>((written_row * e.written.width + w) * e.written.channels));
                    }
                }
            }
            add_tiles(group, first, static_cast<int>(row_cls * columns.taps.size() + column_cls), tile_rows);
        }
    }
    return group;
}

GemmPlan conv_plan(const ConvExtents& e, const Axis& rows, const Axis& columns, int samples, int64_t k, int n,
                   GemmTileRows most_rows, int most_samples) {
    const int tile_rows = most_rows.of(n);
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (e.read.elements() > kMost / 2 || e.written.elements() > kMost / 2 || k > kMost / 2) {
        fail(ErrorKind::kUsage, "convolution: a sample of {} x {} x {} is too large (at most 2^30 elements)",
             e.read.height, e.read.width, e.read.channels);
    }
    GemmPlan plan = start_plan(k, n);
    for (const std::vector<Tap>& row_taps : rows.taps) {
        for (const std::vector<Tap>& column_taps : columns.taps) {
            std::vector<GemmSegment> terms;
            for (const Tap& row : row_taps) {
                for (const Tap& column : column_taps) {
                    terms.push_back({(row.offset * e.read.width + column.offset) * e.read.channels,
                                     (row.k * e.kernel_w + column.k) * e.group_read, e.group_read});
                }
            }
            plan.classes.push_back(make_class(terms, plan));
        }
    }
    const int64_t most =
        std::min<int64_t>({kMost / std::max(e.read.elements(), e.written.elements()), samples, most_samples});
    const int group = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(most, samples_in_cache(e.read))));
    plan.group_samples = group;
    plan.full_groups = samples / group;
    plan.a_stride = group * e.read.elements();
    plan.c_stride = group * e.written.elements();
    if (plan.full_groups > 0) plan.full = conv_group(e, rows, columns, group, tile_rows);
    if (samples % group != 0) plan.rest = conv_group(e, rows, columns, samples % group, tile_rows);
    return plan;
}

GemmGroup dense_group(int rows, int64_t lda, int64_t ldc, int tile_rows) {
    GemmGroup group;
    for (int row = 0; row < rows; ++row) {
        group.a.push_back(static_cast<int32_t>(row * lda));
        group.c.push_back(static_cast<int32_t>(row * ldc));
    }
    add_tiles(group, 0, 0, tile_rows);
    return group;
}

}  // namespace

GemmPlan plan_dense_gemm(int rows, int k, int n, int64_t lda, int64_t ldc, GemmTileRows most_rows) {
    const int tile_rows = most_rows.of(n);
    GemmPlan plan = start_plan(k, n);
    const GemmSegment all{0, 0, k};
    plan.classes.push_back(make_class({&all, 1}, plan));
    // A group is what 32-bit offsets reach, in whole tiles.
    const int64_t reach = std::numeric_limits<int32_t>::max() / std::max(lda, ldc);
    const int group = static_cast<int>(std::clamp<int64_t>(reach / tile_rows * tile_rows, 1, std::max(1, rows)));
    plan.group_samples = group;
    plan.full_groups = rows / group;
    plan.a_stride = group * lda;
    plan.c_stride = group * ldc;
    if (plan.full_groups > 0) plan.full = dense_group(group, lda, ldc, tile_rows);
    if (rows % group != 0) plan.rest = dense_group(rows % group, lda, ldc, tile_rows);
    return plan;
}

SampleShape bordered_in(const ConvShape& shape) {
    return {shape.in.height + shape.pad_top + shape.pad_bottom, shape.in.width + shape.pad_left + shape.pad_right,
            shape.in.channels};
}

int samples_in_cache(const SampleShape& shape) {
    const int64_t bytes = shape.elements() * static_cast<int64_t>(sizeof(float));
    return static_cast<int>(std::max<int64_t>(1, kGroupBytes / bytes));
}

GemmPlan plan_conv_forward(const ConvShape& shape, int rows, bool bordered, GemmTileRows tile_rows, int most_samples) {
    const SampleShape read = bordered ? bordered_in(shape) : shape.in;
    const int group_in = shape.in.channels / shape.groups;
    const Axis vertical = forward_axis(shape.out_h(), read.height, shape.kernel_h, shape.stride_h, shape.dilation_h,
                                       bordered ? 0 : shape.pad_top);
    const Axis horizontal = forward_axis(shape.out_w(), read.width, shape.kernel_w, shape.stride_w, shape.dilation_w,
                                         bordered ? 0 : shape.pad_left);
    return conv_plan({read, shape.out(), group_in, shape.kernel_w}, vertical, horizontal, rows,
                     int64_t{shape.kernel_h} * shape.kernel_w * group_in, shape.out_channels / shape.groups, tile_rows,
                     most_samples);
}

GemmPlan plan_conv_backward_data(const ConvShape& shape, int rows, GemmTileRows tile_rows) {
    const int group_out = shape.out_channels / shape.groups;
    const Axis vertical =
        backward_axis(shape.out_h(), shape.in.height, shape.kernel_h, shape.stride_h, shape.dilation_h, shape.pad_top);
    const Axis horizontal =
        backward_axis(shape.out_w(), shape.in.width, shape.kernel_w, shape.stride_w, shape.dilation_w, shape.pad_left);
    return conv_plan({shape.out(), shape.in, group_out, shape.kernel_w}, vertical, horizontal, rows,
                     int64_t{shape.kernel_h} * shape.kernel_w * group_out, shape.in.channels / shape.groups, tile_rows,
                     rows);
}

}  // namespace lockstep
