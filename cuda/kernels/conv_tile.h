// The parts of a tiled convolution beside those of every matrix product (tile.h): its tiles, where the pixels of a tile
// lie, and how a block of terms is added to what is stored. Device code, included by conv_*.cu only.
#pragma once

#include <cstdint>

#include "cuda/kernels/conv.h"
#include "cuda/kernels/tile.h"

namespace lockstep::conv {

using namespace tile;

template <ConvTile kTileGiven, int kOwnRows, int kOwnColumns, int kLaneRows, int kDepth, int kBlocks>
struct Tile : TileShape<conv_tile_shape(kTileGiven).rows, conv_tile_shape(kTileGiven).columns, kOwnRows, kOwnColumns,
                        kLaneRows, kDepth, kBlocks> {
    static constexpr ConvTile kTile = kTileGiven;
};

using Tile128x128 = Tile<ConvTile::k128x128, 8, 8, 4, 8, 2>;
using Tile128x64 = Tile<ConvTile::k128x64, 8, 8, 4, 8, 3>;
using Tile64x64 = Tile<ConvTile::k64x64, 8, 4, 4, 16, 4>;
using Tile128x32 = Tile<ConvTile::k128x32, 8, 4, 4, 8, 4>;
using Tile128x16 = Tile<ConvTile::k128x16, 4, 4, 8, 8, 5>;
using Tile32x32 = Tile<ConvTile::k32x32, 4, 4, 4, 16, 8>;

/// Calls body.template operator()<T>() for the tile's type.
template <class Body>
void with_tile(ConvTile tile, Body body) {
    with_one_of<Tile128x128, Tile128x64, Tile64x64, Tile128x32, Tile128x16, Tile32x32>(tile, body);
}

/// Adds a block's chains to what is stored in `row` so far (+0 before the first block): own columns of the tile that
/// begins at column `first`, as far as there are `columns`. finish(sum, column): what is stored.
template <class T, class Finish>
__device__ __forceinline__ void add_to_row(const float (&chain)[T::kOwnColumns], const Place<T>& place, float* row,
                                           int first, int columns, bool vector, bool from_zero, Finish finish) {
    LS_UNROLL for (int g = 0; g < T::kOwnColumns / 4; ++g) {
        const int column = first + place.column_of(4 * g);
        if (column >= columns) continue;
        if (vector) {  // `columns` is a multiple of 4 then
            float4* const at = reinterpret_cast<float4*>(row + column);
            const float4 sum = from_zero ? make_float4(0.0F, 0.0F, 0.0F, 0.0F) : *at;
            *at =
                make_float4(finish(sum.x + chain[4 * g], column), finish(sum.y + chain[4 * g + 1], column + 1),
                            finish(sum.z + chain[4 * g + 2], column + 2), finish(sum.w + chain[4 * g + 3], column + 3));
        } else {
            LS_UNROLL for (int c = 0; c < 4; ++c) {
                if (column + c >= columns) continue;
                const float sum = from_zero ? 0.0F : row[column + c];
                row[column + c] = finish(sum + chain[4 * g + c], column + c);
            }
        }
    }
}

__device__ __forceinline__ bool finite(float x) {
    return (__float_as_uint(x) & 0x7f800000U) != 0x7f800000U;
}

/// Whether position + tap lies inside the image.
__device__ __forceinline__ bool inside(int h, int w, const int4& tap, const ConvPass& pass) {
    return static_cast<unsigned>(h + tap.x) < static_cast<unsigned>(pass.read_h) &&
           static_cast<unsigned>(w + tap.y) < static_cast<unsigned>(pass.read_w);
}

/// A row number that no tap brings into an image.
inline constexpr int kNowhere = -(1 << 30);

/// A written pixel: where its taps start, and where it is written.
struct Pixel {
    int h, w;         // base in what is read
    int64_t read;     // element of the base, the group's channel 0; may lie before the image
    int64_t written;  // element of the group's channel 0; -1: no pixel
};

/// Pixel m of a class, counted over all samples, as a group of channels sees it.
__device__ __forceinline__ Pixel pixel_of(const ConvPass& pass, const ConvClass& cls, int samples, int group, int m) {
    const int of_sample = cls.count_h * cls.count_w;
    if (m >= samples * of_sample) return {kNowhere, kNowhere, 0, -1};
    const int n = m / of_sample, rest = m - n * of_sample, i = rest / cls.count_w, j = rest - i * cls.count_w;
    const int h = cls.base_h + i * pass.read_step_h, w = cls.base_w + j * pass.read_step_w;
    const int64_t row = int64_t{n} * pass.written_h + cls.first_h + i * pass.written_step_h;
    return {h, w, ((int64_t{n} * pass.read_h + h) * pass.read_w + w) * pass.read_c + group * pass.depth,
            (row * pass.written_w + cls.first_w + j * pass.written_step_w) * pass.written_c + group * pass.columns};
}

}  // namespace lockstep::conv
