#include "cuda/kernels/norm.h"

#include "backend/arithmetic.hpp"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

constexpr int kChains = 16;
constexpr int kSumsOfBlock = kThreadsOfBlock / kChains;
constexpr int kAhead = 8;  // loads under way at once in each lane
constexpr unsigned kAllLanes = 0xffffffffU;

// Whoever writes writes the same word, so the order of writers is nobody's business.
template <int kWidth>
__global__ void k_find_nonfinite(int64_t n, const float* __restrict__ x, uint32_t mark, uint32_t* found) {
    constexpr uint32_t kExponent = 0x7f800000;
    bool bad = false;
    for_each_pack<kWidth>(n, [&](auto width, int64_t i) {
        for (const float v : load<decltype(width)::value>(x + i).v)
            bad |= (__float_as_uint(v) & kExponent) == kExponent;
    });
    if (bad) *found = mark;
}

__device__ inline double add_square(double sum, float g, float w, float divisor, float l2) {
    if (divisor != 1.0F) g = __fdiv_rn(g, divisor);
    if (l2 != 0.0F) g = __fmaf_rn(l2, w, g);
    return __fma_rn(static_cast<double>(g), static_cast<double>(g), sum);
}

// A chain's terms lie 16 apart, so that sixteen lanes read whole sectors of memory. All lanes of a warp fold together.
__global__ void k_block_square_sums(int64_t n, const float* __restrict__ gradient, const float* __restrict__ w,
                                    float divisor, float l2, double* __restrict__ sums) {
    const int lane = static_cast<int>(threadIdx.x % kChains);
    const int64_t blocks = (n + kSquareBlock - 1) / kSquareBlock;
    for (int64_t first = int64_t{blockIdx.x} * kSumsOfBlock; first < blocks;
         first += int64_t{gridDim.x} * kSumsOfBlock) {
        const int64_t block = first + threadIdx.x / kChains;
        const int64_t begin = block * kSquareBlock, end = begin + kSquareBlock < n ? begin + kSquareBlock : n;
        double sum = 0;
        int64_t i = begin + lane;
        for (; i + (kAhead - 1) * kChains < end; i += kAhead * kChains) {
            float g[kAhead], weight[kAhead];
            for (int k = 0; k < kAhead; ++k) g[k] = gradient[i + k * kChains];
            for (int k = 0; k < kAhead; ++k) weight[k] = l2 != 0.0F ? w[i + k * kChains] : 0.0F;
            for (int k = 0; k < kAhead; ++k) sum = add_square(sum, g[k], weight[k], divisor, l2);
        }
        for (; i < end; i += kChains) sum = add_square(sum, gradient[i], l2 != 0.0F ? w[i] : 0.0F, divisor, l2);
        for (int lanes = kChains / 2; lanes > 0; lanes /= 2) {
            sum = sum + __shfl_down_sync(kAllLanes, sum, static_cast<unsigned>(lanes));
        }
        if (lane == 0 && block < blocks) sums[block] = sum;
    }
}

}  // namespace

void launch_find_nonfinite(int64_t n, const float* x, uint32_t mark, uint32_t* found, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(x);
    launch(four ? k_find_nonfinite<4> : k_find_nonfinite<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream,
           n, in(x, n), mark, inout(found, 1));
}

void launch_block_square_sums(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums,
                              cudaStream_t stream) {
    if (n == 0) return;
    const int64_t blocks = (n + kSquareBlock - 1) / kSquareBlock;
    launch(k_block_square_sums, blocks_for(blocks * kChains), kThreadsOfBlock, 0, stream, n, in(gradient, n),
           in(w, l2 != 0.0F ? n : 0), divisor, l2, out(sums, blocks));
}

}  // namespace lockstep
