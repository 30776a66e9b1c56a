// The parts of a tiled matrix product: how slices travel from device memory to shared memory, how a thread multiplies
// them, and where its outputs lie. Device code, included by the gemm*.cu files only.
#pragma once

#include <cstdint>

#include "cuda/kernels/gemm.h"
#include "cuda/kernels/tile.h"

namespace lockstep::gemm {

using namespace tile;

/// A warp is 4 x 8 threads. kStackBlocks: as kBlocks, where each block keeps values of a stack.
template <GemmTile kTileGiven, int kOwnRows, int kOwnColumns, int kDepth, int kBlocks, int kStackBlocksGiven>
struct Tile
    : TileShape<shape_of(kTileGiven).rows, shape_of(kTileGiven).columns, kOwnRows, kOwnColumns, 4, kDepth, kBlocks> {
    static constexpr GemmTile kTile = kTileGiven;
    static constexpr GemmTileShape kShape = shape_of(kTile);
    static constexpr int kStackBlocks = kStackBlocksGiven, kRegisters = kShape.registers;
    static_assert(Tile::kThreads == kShape.threads && kOwnRows * kOwnColumns == kShape.outputs);
    static_assert(16 * Tile::kSliceQuads == kShape.slice_bytes && kGemmChain % kDepth == 0);
};

using Tile128x128 = Tile<GemmTile::k128x128, 8, 8, 8, 2, 1>;
using Tile64x64 = Tile<GemmTile::k64x64, 8, 4, 16, 4, 3>;
using Tile32x32 = Tile<GemmTile::k32x32, 4, 4, 16, 8, 6>;
using Tile16x128 = Tile<GemmTile::k16x128, 4, 4, 16, 4, 3>;

/// Calls body.template operator()<T>() for the tile's type.
template <class Body>
void with_tile(GemmTile tile, Body body) {
    with_one_of<Tile128x128, Tile64x64, Tile32x32, Tile16x128>(tile, body);
}

__device__ __forceinline__ float4 load_quad(const float* from, int left, bool vector) {
    if (vector && left >= 4) return __ldg(reinterpret_cast<const float4*>(from));
    float4 quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (left > 0) quad.x = __ldg(from);
    if (left > 1) quad.y = __ldg(from + 1);
    if (left > 2) quad.z = __ldg(from + 2);
    if (left > 3) quad.w = __ldg(from + 3);
    return quad;
}

/// One operand's part of a slice on its way to shared memory, kSpan rows or columns wide. In device memory terms of the
/// sum lie side by side (kAlong), or outputs do. What lies outside the matrix arrives as +0 and meets no stored output.
/// A thread's quads keep their distances from slice to slice, so that one address and two limits are all it remembers.
template <class T, int kSpan, bool kAlong>
class SliceLoader {
  public:
    /// Of terms [begin, end), the first slice next. `first`: where the tile begins among the `span` rows or columns;
    /// `vector`: rows begin on 16 bytes.
    __device__ __forceinline__ SliceLoader(const float* matrix, int stride, int first, int span, bool vector, int begin,
                                           int end)
        : stride_(stride), vector_(vector) {
        const int quad = static_cast<int>(threadIdx.x), term = term_of(quad), place = place_of(quad);
        const int64_t row = kAlong ? first + place : begin + term, column = kAlong ? begin + term : first + place;
        from_ = matrix + row * stride + column;
        places_ = span - first - place;
        terms_ = end - begin - term;
    }

    /// The next slice, from device memory.
    __device__ __forceinline__ void load() {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            if (skips(i)) break;
            const int place = place_of(i * T::kThreads), term = term_of(i * T::kThreads);  // beyond the first quad's
            if constexpr (kAlong) {
                quads_[i] = load_quad(from_ + (place == 0 ? term : int64_t{place} * stride_ + term),
                                      place < places_ ? terms_ - term : 0, vector_);
            } else {
                quads_[i] = load_quad(from_ + (term == 0 ? place : int64_t{term} * stride_ + place),
                                      term < terms_ ? places_ - place : 0, vector_);
            }
        }
        terms_ -= T::kDepth;
        from_ += kAlong ? T::kDepth : int64_t{T::kDepth} * stride_;
    }

    __device__ __forceinline__ void store(float* slice) const {
        constexpr int kStride = kSpan + T::kPad;
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            if (skips(i)) break;
            const int quad = static_cast<int>(threadIdx.x) + i * T::kThreads;
            float* to = slice + term_of(quad) * kStride + place_of(quad);
            if constexpr (kAlong) {
                to[0] = quads_[i].x;
                to[kStride] = quads_[i].y;
                to[2 * kStride] = quads_[i].z;
                to[3 * kStride] = quads_[i].w;
            } else {
                *reinterpret_cast<float4*>(to) = quads_[i];
            }
        }
    }

  private:
    static constexpr int kQuads = kSpan * T::kDepth / 4;
    static constexpr int kLoads = (kQuads + T::kThreads - 1) / T::kThreads;
    static_assert(kAlong ? T::kThreads % (2 * kSpan) == 0 || 2 * kSpan % T::kThreads == 0
                         : T::kThreads % (kSpan / 4) == 0 || kSpan / 4 % T::kThreads == 0,
                  "quads of a thread lie at the same distances for every thread");

    // Along the sum, two quads of a row go to neighbouring threads: a sector of 32 bytes is read whole.
    __device__ static __forceinline__ constexpr int term_of(int quad) {
        return kAlong ? 4 * (quad % 2 + 2 * (quad / (2 * kSpan))) : quad / (kSpan / 4);
    }
    __device__ static __forceinline__ constexpr int place_of(int quad) {
        return kAlong ? quad / 2 % kSpan : 4 * (quad % (kSpan / 4));
    }
    __device__ static __forceinline__ bool skips(int i) {
        return kQuads % T::kThreads != 0 && static_cast<int>(threadIdx.x) + i * T::kThreads >= kQuads;
    }

    const float* from_;
    int stride_;
    int places_, terms_;  // that are left, from the first quad's on
    bool vector_;
    float4 quads_[kLoads];
};

/// Terms [begin, end) of the slice in `buffer`. A whole slice has a length that the compiler knows.
template <class T>
__device__ __forceinline__ void multiply_slice(const Slices<T>& slices, int buffer, int begin, int end,
                                               const Place<T>& place, Outputs<T>& sum) {
    const float* rows = slices.rows(buffer) + begin * T::kRowStride;
    const float* columns = slices.columns(buffer) + begin * T::kColumnStride;
    if (end - begin == T::kDepth) return multiply_slice<T>(rows, columns, place, sum);
    for (int k = begin; k < end; ++k, rows += T::kRowStride, columns += T::kColumnStride)
        multiply_term<T>(rows, columns, place, sum);
}

/// Where a block's tile begins. Blocks go down 8 tiles before they go on to the next column of tiles, so that those at
/// work at one time share both operands in the second-level cache.
template <class T>
struct TilePlace {
    int row, column;
    __device__ __forceinline__ TilePlace(int rows, int columns) {
        constexpr int kBand = 8;
        const int tiles_down = (rows + T::kRows - 1) / T::kRows,
                  tiles_across = (columns + T::kColumns - 1) / T::kColumns;
        const int block = static_cast<int>(blockIdx.x), band = block / (kBand * tiles_across) * kBand;
        const int in_band = block - band * tiles_across, height = min(kBand, tiles_down - band);
        row = (band + in_band % height) * T::kRows;
        column = in_band / height * T::kColumns;
    }
};

/// Blocks of the grid for rows x columns outputs.
template <class T>
unsigned tiles_of(int rows, int columns) {
    const int64_t tiles = int64_t{(rows + T::kRows - 1) / T::kRows} * ((columns + T::kColumns - 1) / T::kColumns);
    return static_cast<unsigned>(tiles);
}

}  // namespace lockstep::gemm
