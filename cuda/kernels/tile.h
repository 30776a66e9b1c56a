// What the tiled matrix products of dense layers and of convolutions share: how a block of threads covers a tile of
// outputs, where slices of both operands wait in shared memory, and how a thread multiplies them. Device code, included
// by gemm_tile.h and conv_tile.h.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/kernels/counts.h"
#include "cuda/kernels/finish_sum.h"

namespace lockstep::tile {

/// A block of threads covers kRows x kColumns outputs, a thread kOwnRows x kOwnColumns of them in groups of 4 x 4, a
/// warp is kLaneRows threads high; a slice is kDepth terms of the sum. The compiler is asked for registers that let
/// kBlocks share a multiprocessor.
template <int kRowsGiven, int kColumnsGiven, int kOwnRowsGiven, int kOwnColumnsGiven, int kLaneRowsGiven,
          int kDepthGiven, int kBlocksGiven>
struct TileShape {
    static constexpr int kRows = kRowsGiven, kColumns = kColumnsGiven;
    static constexpr int kOwnRows = kOwnRowsGiven, kOwnColumns = kOwnColumnsGiven;
    static constexpr int kLaneRows = kLaneRowsGiven, kLaneColumns = 32 / kLaneRowsGiven;
    static constexpr int kDepth = kDepthGiven, kBlocks = kBlocksGiven;
    static constexpr int kWarpRows = kLaneRows * kOwnRows, kWarpColumns = kLaneColumns * kOwnColumns;
    static constexpr int kThreads = 32 * (kRows / kWarpRows) * (kColumns / kWarpColumns);
    static constexpr int kRowGroups = kOwnRows / 4, kColumnGroups = kOwnColumns / 4;
    // Rows of a slice in shared memory are 4 floats longer than the tile: a quad along the sum is stored down a column,
    // two quads of 16 rows by each warp, and 4 rows are then 16 banks apart.
    static constexpr int kPad = 4;
    static constexpr int kRowStride = kRows + kPad, kColumnStride = kColumns + kPad;
    static constexpr int kRowSlice = kDepth * kRowStride, kColumnSlice = kDepth * kColumnStride;
    static constexpr int kSliceQuads = 2 * (kRowSlice + kColumnSlice) / 4;  // both operands, twice
    static_assert(kRows % kWarpRows == 0 && kColumns % kWarpColumns == 0 && kDepth % 8 == 0 && 512 % kDepth == 0);
};

/// The slices of both operands, twice: one is multiplied while the other is filled.
template <class T>
struct Slices {
    float* memory;
    __device__ __forceinline__ float* rows(int buffer) const { return memory + buffer * T::kRowSlice; }
    __device__ __forceinline__ float* columns(int buffer) const {
        return memory + 2 * T::kRowSlice + buffer * T::kColumnSlice;
    }
};

/// Where a thread's outputs lie in the tile: groups of 4 x 4, a warp's groups side by side.
template <class T>
struct Place {
    int row, column;  // the first
    __device__ __forceinline__ Place() {
        constexpr int kWarpsAcross = T::kColumns / T::kWarpColumns;
        const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
        row = warp / kWarpsAcross * T::kWarpRows + lane / T::kLaneColumns * 4;
        column = warp % kWarpsAcross * T::kWarpColumns + lane % T::kLaneColumns * 4;
    }
    __device__ __forceinline__ int row_of(int r) const { return row + r / 4 * (4 * T::kLaneRows) + r % 4; }
    __device__ __forceinline__ int column_of(int c) const { return column + c / 4 * (4 * T::kLaneColumns) + c % 4; }
};

template <class T>
using Outputs = float[T::kOwnRows][T::kOwnColumns];

template <class T>
__device__ __forceinline__ void clear(Outputs<T>& sum) {
    LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; ++c) sum[r][c] = 0.0F;
}

template <int kCount>
__device__ __forceinline__ void load_fragment(const float* from, int step, float (&to)[kCount]) {
    LS_UNROLL for (int g = 0; g < kCount / 4; ++g) {
        const float4 quad = *reinterpret_cast<const float4*>(from + g * step);
        to[4 * g] = quad.x;
        to[4 * g + 1] = quad.y;
        to[4 * g + 2] = quad.z;
        to[4 * g + 3] = quad.w;
    }
}

/// One more term of every chain; rows and columns point at the term in the slices.
template <class T>
__device__ __forceinline__ void multiply_term(const float* rows, const float* columns, const Place<T>& place,
                                              Outputs<T>& sum) {
    float a[T::kOwnRows], b[T::kOwnColumns];
    load_fragment(rows + place.row, 4 * T::kLaneRows, a);
    load_fragment(columns + place.column, 4 * T::kLaneColumns, b);
    LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) LS_UNROLL for (int c = 0; c < T::kOwnColumns; ++c) sum[r][c] =
        __fmaf_rn(a[r], b[c], sum[r][c]);
}

/// Every term of a slice; rows and columns point at its first.
template <class T>
__device__ __forceinline__ void multiply_slice(const float* rows, const float* columns, const Place<T>& place,
                                               Outputs<T>& sum) {
    LS_UNROLL for (int k = 0; k < T::kDepth; ++k)
        multiply_term<T>(rows + k * T::kRowStride, columns + k * T::kColumnStride, place, sum);
}

/// Calls body.template operator()<T>() for the one of `Tiles` whose kTile is `tile`.
template <class... Tiles, class Kind, class Body>
void with_one_of(Kind tile, Body body) {
    (void)((Tiles::kTile == tile && (body.template operator()<Tiles>(), true)) || ...);
}

}  // namespace lockstep::tile
