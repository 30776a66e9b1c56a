// What a matrix product adds up, as data: which terms each output row has, in which order, and which rows are worked on
// together. Dense layers and convolutions, forward and data gradient, with any stride, dilation, padding and batch, are
// plans; one kernel (gemm_kernel) runs them all.
//
// C[row][n] = sum over k of A[row's terms][k] * B[k][n]. Rows with the same terms form a class (a pixel at the image's
// border has fewer taps than one inside); a class's terms are segments, runs that are contiguous in A and in k. Rows
// are laid out for one group of samples that stay in cache together and repeat from group to group.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep {

/// `length` terms: A from its row + a on, B from row k on.
struct GemmSegment {
    int32_t a;
    int32_t k;
    int32_t length;
};

struct GemmClass {
    std::vector<GemmSegment> segments;    // ascending k, cut at the block borders
    std::vector<int32_t> block_begin;     // first segment of each block of k, and one past the last
    int first_block = 0, last_block = 0;  // the first and the last with terms; 0, 0 where no block has any
    std::vector<int32_t> offsets;         // A's offset of every k, kept where segments are short and all terms exist
};

/// Rows [first_row, first_row + rows) of a group, all of one class: one register tile.
struct GemmTile {
    int32_t first_row;
    int32_t rows;
    int32_t cls;
};

struct GemmGroup {
    std::vector<int32_t> a;  // offset of each row in A and in C, from the group's first sample
    std::vector<int32_t> c;
    std::vector<GemmTile> tiles;
};

/// Most rows of a register tile: fewer where the columns fill more than two vectors.
struct GemmTileRows {
    int lanes = 0;
    int wide = 0;
    int narrow = 0;
    int of(int n) const { return n > 2 * lanes ? wide : narrow; }
};

struct GemmPlan {
    int k = 0;       // length of the index, absent terms counted
    int n = 0;       // columns
    int blocks = 1;  // of k, each one fma chain
    int chain = 0;   // k positions of a block
    std::vector<GemmClass> classes;
    GemmGroup full, rest;
    int group_samples = 0;  // of a full group
    int64_t full_groups = 0;
    int64_t a_stride = 0, c_stride = 0;  // from a full group to the next

    int64_t tiles() const {
        return full_groups * static_cast<int64_t>(full.tiles.size()) + static_cast<int64_t>(rest.tiles.size());
    }
};

/// rows x k times k x n, A's rows `lda` and C's rows `ldc` apart.
GemmPlan plan_dense_gemm(int rows, int k, int n, int64_t lda, int64_t ldc, GemmTileRows tile_rows);

/// One group of channels of a convolution of `rows` samples; A starts at the group's first input channel, C at its
/// first output channel. k is (kh, kw, c_in). `bordered`: A is a copy of the image with its padding as zeros, so that
/// every tap exists; its extent is bordered_in(shape). `most_samples`: of a group. Throws kUsage where a sample has
/// more than 2^30 elements.
GemmPlan plan_conv_forward(const ConvShape& shape, int rows, bool bordered, GemmTileRows tile_rows, int most_samples);

/// The same for its data gradient: A is dy, C is dx, k is (KH-1-kh, KW-1-kw, c_out).
GemmPlan plan_conv_backward_data(const ConvShape& shape, int rows, GemmTileRows tile_rows);

/// The image with its border.
SampleShape bordered_in(const ConvShape& shape);

/// Samples of this shape that stay in the second-level cache together, at least 1.
int samples_in_cache(const SampleShape& shape);

}  // namespace lockstep
