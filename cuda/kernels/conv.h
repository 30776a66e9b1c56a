// Convolutions on a GPU in the order of addition that defines their bits: the index of a sum is cut at fixed positions
// into blocks, each block is one chain of fused multiply-adds from +0 over its existing terms in order, and the blocks
// are added in order. A thread owns its outputs and runs their chains in registers, so that no tile, grid or device
// changes a bit.
//
//   forward, data gradient   conv_gather.cu: a matrix product whose rows are pixels gathered by a table of taps
//   weight gradient          conv_weights.cu: a matrix product over output positions; blocks of positions in parallel
//   both, with few channels a group (depthwise)   conv_direct.cu: channels on the lanes
//   the order of numbers in memory                conv_layout.cu
//
// A tap outside the image is no term. Where the product multiplies a zero in its place, that is the same bits as long
// as the other factor is finite; where it is not, a plain loop that leaves such taps out takes the product's place.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lockstep {

/// Pixels x channels that a block of threads covers (weight gradient: weights of an output channel x output channels).
enum class ConvTile { k128x128, k128x64, k64x64, k128x32, k128x16, k32x32 };
struct ConvTileShape {
    int rows, columns;
};
constexpr ConvTileShape conv_tile_shape(ConvTile tile) {
    switch (tile) {
        case ConvTile::k128x128:
            return {128, 128};
        case ConvTile::k128x64:
            return {128, 64};
        case ConvTile::k64x64:
            return {64, 64};
        case ConvTile::k128x32:
            return {128, 32};
        case ConvTile::k128x16:
            return {128, 16};
        case ConvTile::k32x32:
            break;
    }
    return {32, 32};
}

/// A pass that reads one kind of image and writes another: forward x -> y, the data gradient dy -> dx. Written pixels
/// that have the same taps are a class (stride s makes s x s of them in a data gradient, otherwise there is one).
struct ConvPass {
    int read_h = 1, read_w = 1, read_c = 1;
    int written_h = 1, written_w = 1, written_c = 1;
    int groups = 1;
    int depth = 1;                         // channels of a group in what is read
    int columns = 1;                       // and in what is written
    int read_step_h = 1, read_step_w = 1;  // between neighbouring pixels of a class, in what is read
    int written_step_h = 1, written_step_w = 1;
    int classes = 1;
    int class_pixels = 1;  // of a sample, in the largest class
    int blocks = 0;        // of all classes
    int terms = 0;         // rows of the packed weights, and entries of the table of taps
    int panel = 4;         // floats of such a row: a multiple of 4, zeros behind the channels
};

/// Pixel (i, j) of a class is written at (first_h + i written_step_h, …) and reads from (base_h + i read_step_h, …) on.
struct ConvClass {
    int first_h, first_w;
    int count_h, count_w;
    int base_h, base_w;
    int blocks_begin, blocks_end;  // in the table of blocks: at least one, ranges of terms
};

/// The tables of a pass in device memory. An entry of `taps` is one term of the sum: rows and columns from the pixel's
/// base, elements from there (the channel included).
struct ConvTables {
    const ConvClass* classes = nullptr;
    const int2* blocks = nullptr;
    const int4* taps = nullptr;
};

/// Weights in the order of a pass, and (one number) whether any of them is not finite. A panel for each group, or where
/// `direct` one of all groups.
struct ConvPacked {
    const float* weights = nullptr;
    const int* nonfinite = nullptr;
};

/// Floats of the packed weights.
int64_t conv_packed_elements(const ConvPass& pass, bool direct);

/// W [out][in/groups][taps] into `weights`; `backward`: as the data gradient reads it. tap_places[tap]: the tap's place
/// among all classes, -1 where no pixel has it.
void conv_pack(const ConvPass& pass, bool direct, bool backward, int taps, const int* tap_places, const float* w,
               float* weights, int* nonfinite, cudaStream_t stream);

/// What both kinds of kernels for forward and data gradient are given. `bias` may be null.
struct ConvGather {
    int rows = 0;  // samples
    const float* read = nullptr;
    const float* bias = nullptr;
    bool relu = false;
    float* written = nullptr;
};
void conv_gather(ConvTile tile, const ConvPass& pass, const ConvTables& tables, const ConvPacked& packed,
                 const ConvGather& run, cudaStream_t stream);
void conv_gather_direct(const ConvPass& pass, const ConvTables& tables, const ConvPacked& packed, const ConvGather& run,
                        cudaStream_t stream);

/// The weight gradient of one shard. The sum over its output positions is cut into blocks of `rows_per_block` rows of
/// output (sample, oh). `pass` and `tables` are the forward pass's. Gradients lie as [kh][kw][in/groups][out].
struct ConvWeights {
    int rows = 0;  // samples
    int rows_per_block = 1;
    int first_block = 0, blocks = 1;  // of this launch
    const float* x = nullptr;
    const float* dy = nullptr;
    const float* bias_gradient = nullptr;  // finite where all of a channel's dy are
    /// In order: each thread takes all blocks and adds them to +0 itself, into one gradient. Otherwise one gradient for
    /// each block, to be added by conv_add_blocks.
    bool in_order = false;
    float* gradient = nullptr;
};
void conv_weights(ConvTile tile, const ConvPass& pass, const ConvTables& tables, const ConvWeights& run,
                  cudaStream_t stream);
void conv_weights_direct(const ConvPass& pass, const ConvTables& tables, const ConvWeights& run, cudaStream_t stream);

/// sum = (from_zero ? +0 : sum) + parts[0] + parts[1] + …, each of `elements` floats.
void conv_add_blocks(int64_t blocks, int64_t elements, bool from_zero, const float* parts, float* sum,
                     cudaStream_t stream);

/// A leaf ([kh][kw][in/groups][out], then the bias gradient) into W's order; db may be null.
void conv_store_gradient(int in_of_group, int out_channels, int taps, const float* leaf, float* dw, float* db,
                         cudaStream_t stream);

}  // namespace lockstep
