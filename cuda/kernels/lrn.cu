// A thread a channel of a row. The neighbours' numbers come from the first-level cache forward; backward, where each
// neighbour needs a window of its own, they are worked out once and wait in shared memory.
#include "cuda/kernels/lrn.h"

#include <algorithm>

#include "core/fixed_float.hpp"
#include "cuda/kernels/counts.h"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

constexpr unsigned kChannelsOfBlock = 64;
static_assert(2 * (kChannelsOfBlock + 2 * kMostLrnRadius) * sizeof(float) <= kSharedWithoutOptIn);

struct Denominator {
    float d, power;  // d^-beta
};

// The window of channel c of a row; `radius` reaches no further than there are channels.
__device__ __forceinline__ Denominator denominator(const LrnShape& shape, const float* row, int c) {
    const int end = min(c + shape.radius + 1, shape.channels);
    float sum = 0.0F;
    for (int i = max(c - shape.radius, 0); i < end; ++i) {
        const float x = __ldg(row + i);
        sum = __fmaf_rn(x, x, sum);
    }
    const float d = __fmaf_rn(shape.alpha, sum, shape.bias);
    return {d, fixed::exp_float(-shape.beta * fixed::log_float(d))};
}

__global__ void __launch_bounds__(kThreadsOfBlock)
    k_lrn(LrnShape shape, int64_t rows, const float* __restrict__ x, float* __restrict__ y) {
    for_each_item(rows, shape.channels, [=](int64_t r, int64_t c) {
        const float* const row = x + r * shape.channels;
        y[r * shape.channels + c] = __ldg(row + c) * denominator(shape, row, static_cast<int>(c)).power;
    });
}

// threadIdx.x: channels of a part of the row; threadIdx.y: rows. Each row has two lines of shared memory, for the part
// and what lies within its radius: t = (dy x) (d^-beta / d), and d^-beta.
__global__ void __launch_bounds__(kThreadsOfBlock)
    k_lrn_backward(LrnShape shape, int64_t rows, const float* __restrict__ x, const float* __restrict__ dy,
                   float* __restrict__ dx) {
    LS_DYN_SHARED(float, memory);
    const int part = static_cast<int>(blockDim.x), span = part + 2 * shape.radius, own = static_cast<int>(threadIdx.x);
    float* const terms = memory + static_cast<int>(threadIdx.y) * 2 * span;
    float* const powers = terms + span;
    const float twice = (2.0F * shape.alpha) * shape.beta;
    for (int64_t first_row = int64_t{blockIdx.y} * blockDim.y; first_row < rows;
         first_row += int64_t{gridDim.y} * blockDim.y) {
        const bool used = first_row + threadIdx.y < rows;
        const int64_t at = (first_row + threadIdx.y) * shape.channels;
        for (int first = static_cast<int>(blockIdx.x) * part; first < shape.channels;
             first += static_cast<int>(gridDim.x) * part) {
            for (int i = own; used && i < span; i += part) {
                const int c = first - shape.radius + i;
                if (c < 0 || c >= shape.channels) continue;
                const Denominator of = denominator(shape, x + at, c);
                terms[i] = (__ldg(dy + at + c) * __ldg(x + at + c)) * __fdiv_rn(of.power, of.d);
                powers[i] = of.power;
            }
            __syncthreads();
            if (const int c = first + own; used && c < shape.channels) {
                const int end = min(c + shape.radius + 1, shape.channels) - first + shape.radius;
                float sum = 0.0F;
                for (int i = max(c - shape.radius, 0) - first + shape.radius; i < end; ++i) sum = sum + terms[i];
                dx[at + c] =
                    __fmaf_rn(-(twice * __ldg(x + at + c)), sum, __ldg(dy + at + c) * powers[own + shape.radius]);
            }
            __syncthreads();  // before the next part overwrites the lines
        }
    }
}

LrnShape within_channels(LrnShape shape) {
    shape.radius = std::min(shape.radius, shape.channels - 1);
    return shape;
}

}  // namespace

void launch_lrn(const LrnShape& shape, int64_t rows, const float* x, float* y, cudaStream_t stream) {
    if (rows == 0) return;
    const LineGrid lines(rows, shape.channels);
    const std::size_t n = count(rows * shape.channels);
    launch(k_lrn, lines.grid, lines.block, 0, stream, within_channels(shape), rows, in(x, n), out(y, n));
}

void launch_lrn_backward(const LrnShape& shape, int64_t rows, const float* x, const float* dy, float* dx,
                         cudaStream_t stream) {
    if (rows == 0) return;
    const LrnShape within = within_channels(shape);
    unsigned across = 1;
    while (across < kChannelsOfBlock && static_cast<int>(across) < shape.channels) across *= 2;
    const std::size_t bytes_of_row = 2 * (across + 2 * count(within.radius)) * sizeof(float);
    const std::size_t fitting = kSharedWithoutOptIn / bytes_of_row;
    unsigned down = kThreadsOfBlock / across;
    while (down > fitting) down /= 2;
    const dim3 grid(static_cast<unsigned>(ceil_div(shape.channels, across)),
                    static_cast<unsigned>(std::min<int64_t>(ceil_div(rows, down), 16384)));
    const std::size_t n = count(rows * shape.channels);
    launch(k_lrn_backward, grid, dim3(across, down), down * bytes_of_row, stream, within, rows, in(x, n), in(dy, n),
           out(dx, n));
}

}  // namespace lockstep
