#include "backend/cpu/conv_layout.hpp"

#include <algorithm>

#include "backend/cpu/gemm_plan.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

int64_t round_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

// W is turned in pieces that fit the first-level cache, by way of a copy: its columns lie kilobytes apart, often at a
// distance of which many share a set of the cache, and would evict each other between two of their elements.
constexpr int64_t kPiece = 128;   // elements of a column of W, or one tap's if it has more
constexpr int64_t kColumns = 64;  // of W at a time: a panel has no more

/// Taps and channels of a column at a time: [channels][taps] of W lie together if they are whole taps.
struct Piece {
    int64_t channels, taps;
    explicit Piece(int64_t all_taps)
        : channels(std::max<int64_t>(1, kPiece / all_taps)), taps(std::min(all_taps, kPiece)) {}
};

/// body(first channel, channels, first tap, taps) for the pieces of a column of W.
template <class Body>
void for_each_piece(int64_t channels, int64_t taps, const Body& body) {
    const Piece piece(taps);
    for (int64_t c = 0; c < channels; c += piece.channels) {
        for (int64_t tap = 0; tap < taps; tap += piece.taps) {
            body(c, std::min(piece.channels, channels - c), tap, std::min(piece.taps, taps - tap));
        }
    }
}

}  // namespace

ConvLayout::ConvLayout(const ConvShape& shape, bool depthwise, int lanes)
    : shape_(shape),
      depthwise_(depthwise),
      taps_(int64_t{shape.kernel_h} * shape.kernel_w),
      group_in_(shape.in.channels / shape.groups),
      group_out_(shape.out_channels / shape.groups),
      stride_(round_up(depthwise ? shape.out_channels : group_out_, lanes)),
      bias_offset_(depthwise ? taps_ * stride_ : shape.groups * taps_ * group_in_ * stride_) {}

std::size_t ConvLayout::packed_bytes(const GemmKernels& kernels, bool backward) const {
    if (depthwise_) return static_cast<std::size_t>(taps_ * shape_.in.channels) * sizeof(float);
    const int n = static_cast<int>(columns(backward));
    return static_cast<std::size_t>(shape_.groups * kernels.panels(n) * kernels.panel_width(n) * depth(backward)) *
           sizeof(float);
}

void ConvLayout::pack(const GemmKernels& kernels, const float* w, bool backward, int part, int parts,
                      float* packed) const {
    const auto place_of_tap = [&](int64_t tap) { return backward ? taps_ - 1 - tap : tap; };
    if (depthwise_) {
        const IndexRange channels = part_of(shape_.in.channels, part, parts, 16);
        for (int64_t tap = 0; tap < taps_; ++tap) {
            float* row = packed + place_of_tap(tap) * shape_.in.channels;
            for (int64_t c = channels.begin; c < channels.end; ++c) row[c] = w[c * taps_ + tap];
        }
        return;
    }
    const int64_t n = columns(backward);
    const int64_t width = kernels.panel_width(static_cast<int>(n)), panels = kernels.panels(static_cast<int>(n));
    const IndexRange range = part_of(shape_.groups * panels, part, parts);
    for (int64_t unit = range.begin; unit < range.end; ++unit) {
        const int64_t group = unit / panels, first = unit % panels * width;
        float* panel = packed + unit * depth(backward) * width;
        const int64_t count = std::min(width, n - first);
        if (!backward) {
            pack_columns(w + (group * group_out_ + first) * group_in_ * taps_, count, width, panel);
            continue;
        }
        for (int64_t out = 0; out < group_out_; ++out) {  // its columns lie together
            const float* from = w + ((group * group_out_ + out) * group_in_ + first) * taps_;
            for (int64_t tap = 0; tap < taps_; ++tap) {
                float* row = panel + ((taps_ - 1 - tap) * group_out_ + out) * width;
                for (int64_t j = 0; j < count; ++j) row[j] = from[j * taps_ + tap];
                std::fill(row + count, row + width, 0.0F);
            }
        }
    }
}

void ConvLayout::pack_columns(const float* w, int64_t count, int64_t width, float* panel) const {
    float copies[kColumns][kPiece + 1];
    for_each_piece(group_in_, taps_, [&](int64_t c, int64_t channels, int64_t tap, int64_t taps) {
        for (int64_t j = 0; j < count; ++j) {
            std::copy_n(w + (j * group_in_ + c) * taps_ + tap, channels * taps, copies[j]);
        }
        for (int64_t t = 0; t < taps; ++t) {
            for (int64_t i = 0; i < channels; ++i) {
                float* row = panel + ((tap + t) * group_in_ + c + i) * width;
                for (int64_t j = 0; j < count; ++j) row[j] = copies[j][i * taps + t];
                std::fill(row + count, row + width, 0.0F);
            }
        }
    });
}

void ConvLayout::store_gradient(const float* leaf, int part, int parts, float* dw, float* db) const {
    // Columns of the leaf that lie together are channels of one group, or for a depthwise convolution all of them.
    const int64_t run = depthwise_ ? shape_.out_channels : group_out_;
    const IndexRange range = part_of(shape_.out_channels, part, parts, 16);
    for (int64_t o = range.begin; o < range.end;) {
        const int64_t group = o / run, column = o % run;
        const int64_t count = std::min({kColumns, range.end - o, run - column});
        for_each_piece(group_in_, taps_, [&](int64_t c, int64_t channels, int64_t tap, int64_t taps) {
            float copies[kPiece][kColumns + 1];  // [channels][taps][outputs]; rows begin in all sets of the cache
            for (int64_t t = 0; t < taps; ++t) {
                for (int64_t i = 0; i < channels; ++i) {
                    const float* from = leaf + ((group * taps_ + tap + t) * group_in_ + c + i) * stride_ + column;
                    std::copy_n(from, count, copies[i * taps + t]);
                }
            }
            for (int64_t j = 0; j < count; ++j) {
                float* to = dw + ((o + j) * group_in_ + c) * taps_ + tap;
                for (int64_t i = 0; i < channels * taps; ++i) to[i] = copies[i][j];
            }
        });
        o += count;
    }
    if (part == 0 && shape_.bias && db != nullptr) std::copy_n(leaf + bias_offset_, shape_.out_channels, db);
}

void copy_with_border(const ConvShape& shape, const float* images, int64_t samples, float* to) {
    const SampleShape whole = bordered_in(shape);
    const int64_t whole_row = int64_t{whole.width} * whole.channels, row = int64_t{shape.in.width} * shape.in.channels;
    const int64_t left = int64_t{shape.pad_left} * shape.in.channels;
    for (int64_t n = 0; n < samples; ++n) {
        to = std::fill_n(to, shape.pad_top * whole_row + left, 0.0F);
        for (int h = 0; h < shape.in.height; ++h) {
            to = std::copy_n(images, row, to);
            images += row;
            const bool last = h == shape.in.height - 1;
            // The right border of this row and the left one of the next, or of the last row what is left of the image.
            const int64_t right = int64_t{shape.pad_right} * shape.in.channels;
            to = std::fill_n(to, right + (last ? shape.pad_bottom * whole_row : left), 0.0F);
        }
    }
}

}  // namespace lockstep
