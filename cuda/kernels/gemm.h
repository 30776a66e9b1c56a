// Matrix products of dense layers on a GPU in the order of addition that defines their bits: a sum over features or
// samples is cut into blocks of kGemmChain terms, each block is one chain of fused multiply-adds from +0, and the
// blocks are added in order. A thread owns its outputs and runs their chains in registers, so that no tile, split or
// device changes a bit.
//
// All kernels are one loop (gemm_tile.h): slices of both operands wait in shared memory twice, the next slice travels
// through registers while this one is multiplied, and a warp covers 4 x 8 threads so that its loads from shared memory
// are broadcasts or whole lines. What a block of threads covers is chosen by backend/dense_plan.hpp, which compares
// estimates made from counts (nothing in it was measured on a GPU):
//
//   128 x 128   8 x 8 outputs a thread, 256 threads: 16 products for each 16-byte load from shared memory. Where such
//               tiles are enough for every multiprocessor: wide layers with batches of hundreds.
//   64 x 64     8 x 4 a thread, 128 threads, 10.7 products a load: four times as many tiles. Layers of some hundred
//               features; gradients whose stack of larger tiles would not fit in shared memory.
//   32 x 32     4 x 4 a thread, 64 threads, 8 products a load: small layers, where a block's time counts and not the
//               rate of a full device; gradients of very many shards.
//   16 x 128    4 x 4 a thread, 128 threads: at most 16 rows (a batch of one to 16 samples, a gradient of ten classes)
//               of so many columns that every multiprocessor has work, where rows of a larger tile would be nobody's.
//
// Split: few tiles and long sums leave multiprocessors idle, so the chains of a sum go to different thread blocks,
// which write them to `partial`, and a second kernel adds them in order. Inside one tile a sum of several chains keeps
// its running total in the output itself: read and written once in 512 terms it costs little, and it saves the
// registers that let two 128 x 128 tiles share a multiprocessor.
//
// Registers (nvcc 13.0, sm_80 / 90 / 100, none spilled) and the warps of a multiprocessor that follow, of 64:
//   128 x 128   sums 128, gradient of one chain 126-128: 16 warps. With a stack, one waiting value of each output in
//               registers, 227-237: 8 warps
//   64 x 64     sums 103-121, gradient of one chain 103-123: 16. With one waiting value 149-165: 12
//   32 x 32     sums 91-109: 18-20; gradient of one chain 90-96: 20. With two waiting values 130-150: 12-14
//   16 x 128    sums 100-115: 16; gradient of one chain 96-107: 16-20. With two waiting values 137-150: 12
// Further waiting values take rows x columns x 4 bytes each of shared memory, and may allow fewer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/fold_rows.h"

namespace lockstep {

/// Terms of one fma chain.
inline constexpr int kGemmChain = 512;

enum class GemmTile { k128x128, k64x64, k32x32, k16x128 };
inline constexpr GemmTile kGemmTiles[] = {GemmTile::k128x128, GemmTile::k64x64, GemmTile::k32x32, GemmTile::k16x128};

struct GemmTileShape {
    int rows, columns;
    int threads;
    int outputs;      // of a thread
    int registers;    // values of the fold's stack that a thread keeps in registers, for each output
    int slice_bytes;  // shared memory of the slices
};
constexpr GemmTileShape shape_of(GemmTile tile) {
    switch (tile) {
        case GemmTile::k128x128:
            return {128, 128, 256, 64, 1, 2 * 8 * (132 + 132) * 4};
        case GemmTile::k64x64:
            return {64, 64, 128, 32, 1, 2 * 16 * (68 + 68) * 4};
        case GemmTile::k32x32:
            return {32, 32, 64, 16, 2, 2 * 16 * (36 + 36) * 4};
        case GemmTile::k16x128:
            return {16, 128, 128, 16, 2, 2 * 16 * (20 + 132) * 4};
    }
    return {};
}

struct GemmWay {
    GemmTile tile = GemmTile::k32x32;
    bool split = false;  // blocks of the sum to different thread blocks, through `partial`
    bool operator==(const GemmWay&) const = default;
};

/// y [rows][out] = x [rows][in] W^T + bias, then relu if asked for; w [out][in]. `bias` may be null. With a split,
/// `partial` holds ceil(in / kGemmChain) * rows * out floats; else it may be null.
void gemm_forward(GemmWay way, int rows, int in, int out, const float* x, const float* w, const float* bias, bool relu,
                  float* y, float* partial, cudaStream_t stream);

/// dx [rows][in] = dy [rows][out] W. With a split, `partial` holds ceil(out / kGemmChain) * rows * in floats.
void gemm_backward_data(GemmWay way, int rows, int in, int out, const float* dy, const float* w, float* dx,
                        float* partial, cudaStream_t stream);

/// The chains of one root, on the device: a fold program's leaves with a chain in the place of a shard.
struct GemmChains {
    const FoldLeaf* leaves;
    int count;
    int kept;  // most values that wait on the stack
};

/// dW [out][in] of one root: over each chain's samples one fma chain dy [rows][out]^T x [rows][in], added up as the
/// leaves say. With a split, `partial` holds count * out * in floats.
void gemm_weight_gradient(GemmWay way, int in, int out, const GemmChains& chains, const float* x, const float* dy,
                          int rows, float* dw, float* partial, cudaStream_t stream);

/// Shared memory of that kernel where `kept` values wait on the stack, in bytes: its slices, and what of the stack
/// registers do not hold.
constexpr std::size_t gemm_gradient_shared(GemmWay way, int kept) {
    const GemmTileShape shape = shape_of(way.tile);
    const auto slices = static_cast<std::size_t>(shape.slice_bytes);
    if (way.split || kept <= shape.registers) return slices;
    return slices + static_cast<std::size_t>(kept - shape.registers) *
                        static_cast<std::size_t>(shape.rows * shape.columns) * sizeof(float);
}

/// Allows that much on the current device; once, before the first gemm_weight_gradient of the way.
void gemm_allow_shared(GemmWay way, int kept);

}  // namespace lockstep
