// Weight gradient of a convolution as a matrix product: rows are weights (tap, channel) of an output channel, columns
// output channels of one group, terms output positions. Blocks of positions are dealt to the grid and added by a second
// kernel; or, where the weights alone fill the device, every thread adds its blocks itself.
#include "cuda/kernels/conv_positions.h"
#include "cuda/kernels/conv_tile.h"

namespace lockstep {
namespace conv {

// A tile by the definition itself: taps outside the image are left out, whatever dy is.
template <class T>
__device__ __forceinline__ void weights_exactly(const ConvPass& pass, const ConvClass& cls, int samples,
                                                int rows_per_block, const Task& task, const int4* taps, const float* x,
                                                const float* dy, float* gradient) {
    LS_LOOP for (int i = static_cast<int>(threadIdx.x); i < T::kRows * T::kColumns; i += T::kThreads) {
        const int term = i / T::kColumns, column = task.first_column + i % T::kColumns;
        if (task.first_term + term >= pass.terms || column >= pass.columns) continue;
        const int4 tap = taps[task.first_term + term];
        const int read_channel = task.group * pass.depth, channel = task.group * pass.columns + column;
        float total = 0.0F;
        LS_LOOP for (int block = task.block; block < task.end; ++block) {
            const int first = block * rows_per_block;
            float chain = 0.0F;
            LS_LOOP for (int row = first; row < first + rows_of(pass, samples, rows_per_block, block); ++row) {
                const int64_t n = row / pass.written_h;
                const int h = cls.base_h + row % pass.written_h * pass.read_step_h;
                LS_LOOP for (int j = 0; j < pass.written_w; ++j) {
                    const int w = cls.base_w + j * pass.read_step_w;
                    if (!inside(h, w, tap, pass)) continue;
                    const int64_t pixel = ((n * pass.read_h + h) * pass.read_w + w) * pass.read_c;
                    chain = __fmaf_rn(x[pixel + tap.z + read_channel],
                                      dy[(int64_t{row} * pass.written_w + j) * pass.written_c + channel], chain);
                }
            }
            total = total + chain;
        }
        gradient[task.gradient + int64_t{term} * pass.written_c + column] = total;
    }
}

// A block of threads: one tile of one group; one block of positions, or all of the launch in order.
template <class T, bool kQuads>
__global__ void __launch_bounds__(T::kThreads, kQuads ? T::kBlocks : T::kBlocks - 1)
    k_weights(ConvPass pass, int samples, int rows_per_block, int first_block, int blocks, bool in_order,
              int tiles_down, int tiles_across, const ConvClass* __restrict__ classes, const int4* __restrict__ taps,
              const float* __restrict__ x, const float* __restrict__ dy, const float* __restrict__ bias_gradient,
              bool vector_dy, bool vector_gradient, float* __restrict__ gradient) {
    LS_SHARED(float4, slice_memory, T::kSliceQuads);
    LS_SHARED(int64_t, x_at, 2 * T::kDepth);
    LS_SHARED(int64_t, dy_at, 2 * T::kDepth);
    LS_SHARED(int2, base_at, 2 * T::kDepth);
    LS_SHARED(int4, position_state, T::kDepth);
    LS_SHARED(int2, position_block, T::kDepth);
    LS_SHARED(Task, task, 1);
    const Slices<T> slices{reinterpret_cast<float*>(slice_memory)};
    const Positions<T> positions{x_at, dy_at, base_at, position_state, position_block};

    const int thread = static_cast<int>(threadIdx.x);
    if (thread == 0) {
        int rest = static_cast<int>(blockIdx.x);
        task->first_column = rest % tiles_across * T::kColumns;
        rest /= tiles_across;
        task->first_term = rest % tiles_down * T::kRows;
        rest /= tiles_down;
        task->group = rest % pass.groups;
        rest /= pass.groups;
        const int slot = in_order ? 0 : rest;
        task->block = first_block + slot;
        task->end = first_block + (in_order ? blocks : slot + 1);
        task->gradient = (int64_t{slot} * pass.terms + task->first_term) * pass.written_c + task->group * pass.columns;
        task->exactly = 0;
    }
    __syncthreads();
    for (int c = thread; c < T::kColumns; c += T::kThreads) {
        const int column = task->first_column + c;
        if (column < pass.columns && !finite(bias_gradient[task->group * pass.columns + column])) task->exactly = 1;
    }
    if (thread < T::kDepth) {
        positions.start(pass, samples, rows_per_block, task->block);
        positions.advance(pass, classes, samples, rows_per_block, task->end, 0);
        positions.advance(pass, classes, samples, rows_per_block, task->end, 1);
    }
    __syncthreads();
    if (task->exactly != 0) {
        weights_exactly<T>(pass, classes[0], samples, rows_per_block, *task, taps, x, dy, gradient);
        return;
    }

    TapLoader<T, kQuads> of_x(pass, task->group, x, taps, task->first_term);
    GradientLoader<T> of_dy(dy, vector_dy);
    const Place<T> place;
    Outputs<T> chain;
    clear<T>(chain);
    int block = task->block, buffer = 0;
    int slices_left = slices_of<T>(pass, samples, rows_per_block, block);
    of_x.load(pass, positions, 0);
    of_dy.load(pass, *task, positions, 0);
    for (;;) {
        of_x.store(slices.rows(buffer));
        of_dy.store(slices.columns(buffer));
        __syncthreads();  // and the slice before this one has been multiplied, its positions read by all
        const bool ends = --slices_left == 0, more = !ends || block + 1 < task->end;
        if (more) {
            of_x.load(pass, positions, buffer ^ 1);
            of_dy.load(pass, *task, positions, buffer ^ 1);
        }
        if (thread < T::kDepth) positions.advance(pass, classes, samples, rows_per_block, task->end, buffer);
        multiply_slice<T>(slices.rows(buffer), slices.columns(buffer), place, chain);
        if (ends) {
            LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) {
                const int term = place.row_of(r);
                if (task->first_term + term >= pass.terms) continue;
                add_to_row<T>(chain[r], place, gradient + (task->gradient + int64_t{term} * pass.written_c),
                              task->first_column, pass.columns, vector_gradient, block == task->block,
                              [](float sum, int) { return sum; });
            }
            clear<T>(chain);
            if (!more) break;
            slices_left = slices_of<T>(pass, samples, rows_per_block, ++block);
        }
        buffer ^= 1;
    }
}

}  // namespace conv

void conv_weights(ConvTile tile, const ConvPass& pass, const ConvTables& tables, const ConvWeights& run,
                  cudaStream_t stream) {
    using namespace conv;
    const ConvTileShape shape = conv_tile_shape(tile);
    const auto down = static_cast<int>(ceil_div(pass.terms, shape.rows));
    const auto across = static_cast<int>(ceil_div(pass.columns, shape.columns));
    const int64_t gradients = run.in_order ? 1 : run.blocks;
    const auto grid = static_cast<unsigned>(int64_t{down} * across * pass.groups * gradients);
    const bool quads = pass.depth % 4 == 0 && in_quads(run.x, pass.read_c);
    const bool in_columns = pass.columns % 4 == 0;
    const bool vector_dy = in_columns && in_quads(run.dy, pass.written_c);
    const bool vector_gradient = in_columns && in_quads(run.gradient, pass.written_c);
    const auto start = [&](auto kernel, int threads) {
        launch(kernel, grid, dim3(static_cast<unsigned>(threads)), 0, stream, pass, run.rows, run.rows_per_block,
               run.first_block, run.blocks, run.in_order, down, across, in(tables.classes, 1),
               in(tables.taps, count(pass.terms)),
               in(run.x, count(int64_t{run.rows} * pass.read_h * pass.read_w * pass.read_c)),
               in(run.dy, count(int64_t{run.rows} * pass.written_h * pass.written_w * pass.written_c)),
               in(run.bias_gradient, count(pass.written_c)), vector_dy, vector_gradient,
               out(run.gradient, count(gradients * pass.terms * pass.written_c)));
    };
    with_tile(tile, [&]<class T>() {
        if (quads) {
            start(k_weights<T, true>, T::kThreads);
        } else {
            start(k_weights<T, false>, T::kThreads);
        }
    });
}

}  // namespace lockstep
