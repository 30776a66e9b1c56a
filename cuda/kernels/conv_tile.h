// The inner product of the tiled convolution kernels: how a block of threads covers a tile of outputs, and how a thread
// multiplies slices of both operands that wait in shared memory. Device code, included by conv_*.cu only.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/kernels/conv.h"

#ifdef LOCKSTEP_CUDA_EMULATION
#define LS_CONV_UNROLL
#define LS_CONV_LOOP
#else
#define LS_CONV_UNROLL _Pragma("unroll")
#define LS_CONV_LOOP _Pragma("unroll 1")
#endif

namespace lockstep::conv {

/// A thread owns kOwnRows x kOwnColumns outputs in groups of 4 x 4; a warp is kLaneRows threads high. A slice is kDepth
/// terms of the sum. kBlocks a multiprocessor are asked of the compiler.
template <ConvTile kTile, int kOwnRowsGiven, int kOwnColumnsGiven, int kLaneRowsGiven, int kDepthGiven,
          int kBlocksGiven>
struct Tile {
    static constexpr int kRows = conv_tile_shape(kTile).rows, kColumns = conv_tile_shape(kTile).columns;
    static constexpr int kOwnRows = kOwnRowsGiven, kOwnColumns = kOwnColumnsGiven;
    static constexpr int kLaneRows = kLaneRowsGiven, kLaneColumns = 32 / kLaneRowsGiven;
    static constexpr int kDepth = kDepthGiven, kBlocks = kBlocksGiven;
    static constexpr int kWarpRows = kLaneRows * kOwnRows, kWarpColumns = kLaneColumns * kOwnColumns;
    static constexpr int kThreads = 32 * (kRows / kWarpRows) * (kColumns / kWarpColumns);
    // 4 floats more than the tile: where pixels are stored down a column, 4 rows are then 16 banks apart.
    static constexpr int kRowStride = kRows + 4, kColumnStride = kColumns + 4;
    static constexpr int kRowSlice = kDepth * kRowStride, kColumnSlice = kDepth * kColumnStride;
    static constexpr int kSliceQuads = 2 * (kRowSlice + kColumnSlice) / 4;  // both operands, twice
    static_assert(kRows % kWarpRows == 0 && kColumns % kWarpColumns == 0 && kDepth % 8 == 0 && 512 % kDepth == 0);
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
    switch (tile) {
        case ConvTile::k128x128:
            return body.template operator()<Tile128x128>();
        case ConvTile::k128x64:
            return body.template operator()<Tile128x64>();
        case ConvTile::k64x64:
            return body.template operator()<Tile64x64>();
        case ConvTile::k128x32:
            return body.template operator()<Tile128x32>();
        case ConvTile::k128x16:
            return body.template operator()<Tile128x16>();
        case ConvTile::k32x32:
            return body.template operator()<Tile32x32>();
    }
}

/// The slices of both operands, twice: one is multiplied while the other is filled.
template <class T>
struct Slices {
    float* memory;
    __device__ __forceinline__ float* rows(int buffer) const { return memory + buffer * T::kRowSlice; }
    __device__ __forceinline__ float* columns(int buffer) const {
        return memory + 2 * T::kRowSlice + buffer * T::kColumnSlice;
    }
};

/// Where a thread's outputs lie in the tile.
template <class T>
struct Place {
    int row, column;  // the first
    __device__ __forceinline__ Place() {
        constexpr int kAcross = T::kColumns / T::kWarpColumns;
        const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
        row = warp / kAcross * T::kWarpRows + lane / T::kLaneColumns * 4;
        column = warp % kAcross * T::kWarpColumns + lane % T::kLaneColumns * 4;
    }
    __device__ __forceinline__ int row_of(int r) const { return row + r / 4 * (4 * T::kLaneRows) + r % 4; }
    __device__ __forceinline__ int column_of(int c) const { return column + c / 4 * (4 * T::kLaneColumns) + c % 4; }
};

template <class T>
using Outputs = float[T::kOwnRows][T::kOwnColumns];

template <class T>
__device__ __forceinline__ void clear(Outputs<T>& sum) {
    LS_CONV_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_CONV_UNROLL for (int c = 0; c < T::kOwnColumns; ++c)
        sum[r][c] = 0.0F;
}

template <int kCount>
__device__ __forceinline__ void load_fragment(const float* from, int step, float (&to)[kCount]) {
    LS_CONV_UNROLL for (int g = 0; g < kCount / 4; ++g) {
        const float4 quad = *reinterpret_cast<const float4*>(from + g * step);
        to[4 * g] = quad.x;
        to[4 * g + 1] = quad.y;
        to[4 * g + 2] = quad.z;
        to[4 * g + 3] = quad.w;
    }
}

/// Every term of the slices in `buffer`. What lies behind the end of a block of terms is +0 on both sides.
template <class T>
__device__ __forceinline__ void multiply(const Slices<T>& slices, int buffer, const Place<T>& place, Outputs<T>& sum) {
    const float* rows = slices.rows(buffer) + place.row;
    const float* columns = slices.columns(buffer) + place.column;
    LS_CONV_UNROLL for (int k = 0; k < T::kDepth; ++k) {
        float a[T::kOwnRows], b[T::kOwnColumns];
        load_fragment(rows + k * T::kRowStride, 4 * T::kLaneRows, a);
        load_fragment(columns + k * T::kColumnStride, 4 * T::kLaneColumns, b);
        LS_CONV_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_CONV_UNROLL for (int c = 0; c < T::kOwnColumns; ++c)
            sum[r][c] = __fmaf_rn(a[r], b[c], sum[r][c]);
    }
}

/// Adds a block's chains to what is stored in `row` so far (+0 before the first block): own columns of the tile that
/// begins at column `first`, as far as there are `columns`. finish(sum, column): what is stored.
template <class T, class Finish>
__device__ __forceinline__ void add_to_row(const float (&chain)[T::kOwnColumns], const Place<T>& place, float* row,
                                           int first, int columns, bool vector, bool from_zero, Finish finish) {
    LS_CONV_UNROLL for (int g = 0; g < T::kOwnColumns / 4; ++g) {
        const int column = first + place.column_of(4 * g);
        if (column >= columns) continue;
        if (vector) {  // `columns` is a multiple of 4 then
            float4* const at = reinterpret_cast<float4*>(row + column);
            const float4 sum = from_zero ? make_float4(0.0F, 0.0F, 0.0F, 0.0F) : *at;
            *at =
                make_float4(finish(sum.x + chain[4 * g], column), finish(sum.y + chain[4 * g + 1], column + 1),
                            finish(sum.z + chain[4 * g + 2], column + 2), finish(sum.w + chain[4 * g + 3], column + 3));
        } else {
            LS_CONV_UNROLL for (int c = 0; c < 4; ++c) {
                if (column + c >= columns) continue;
                const float sum = from_zero ? 0.0F : row[column + c];
                row[column + c] = finish(sum + chain[4 * g + c], column + c);
            }
        }
    }
}

/// Sum + bias, then relu: x <= 0 becomes +0, a NaN stays.
__device__ __forceinline__ float finish_sum(float sum, const float* bias, int channel, bool relu) {
    if (bias != nullptr) sum = sum + bias[channel];
    return relu && sum <= 0 ? 0.0F : sum;
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

/// Whether rows of `elements` may be read and written as quads.
inline bool in_quads(const void* memory, int elements) {
    return elements % 4 == 0 && reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
}

inline std::size_t count(int64_t n) {
    return static_cast<std::size_t>(n);
}

inline int64_t ceil_div(int64_t n, int64_t d) {
    return (n + d - 1) / d;
}

}  // namespace lockstep::conv
