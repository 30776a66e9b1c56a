// See planted_kernels.h.
#include "test/emulation/planted_kernels.h"

#include <cstring>

#include "cuda/device.h"

namespace lockstep::planted {
namespace {

unsigned blocks_of(std::size_t n) {
    return static_cast<unsigned>(n == 0 ? 1 : (n + 255) / 256);
}

__global__ void k_scale(float* __restrict__ y, const float* __restrict__ x, std::size_t n, float a) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a * x[i];
}

__global__ void k_scale_by_four(float* y, std::size_t n, float a, bool with_tail) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const std::size_t groups = with_tail ? n / 4 : (n + 3) / 4;
    if (i < groups) {
        float4 v = reinterpret_cast<float4*>(y)[i];
        v.x *= a;
        v.y *= a;
        v.z *= a;
        v.w *= a;
        reinterpret_cast<float4*>(y)[i] = v;
    }
    if (with_tail && i < n % 4) y[n / 4 * 4 + i] *= a;
}

__global__ void k_touch(float* x, std::ptrdiff_t at) {
    x[at] += 1.0F;
}

template <bool kBarrier>
__global__ void k_block_sums(float* sums, const float* x, std::size_t n) {
    LS_SHARED(float, part, 8);
    const std::size_t base = std::size_t{blockIdx.x} * 1024 + threadIdx.x;
    float s = 0;
    for (int k = 0; k < 4; ++k) {
        if (base + k * 256 < n) s += x[base + k * 256];
    }
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    if (kBarrier) __syncthreads();
    if (threadIdx.x < 32) {
        s = threadIdx.x < 8 ? part[threadIdx.x] : 0.0F;
        for (int d = 4; d > 0; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (threadIdx.x == 0) sums[blockIdx.x] = s;
    }
}

__global__ void k_atomic_sum(float* sum, const float* x, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}

__global__ void k_barrier_below_return(float* x, std::size_t n, bool return_first) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (return_first && i >= n) return;
    __syncthreads();
    if (i < n) x[i] = 1.0F;
}

__global__ void k_two_barriers(float* x) {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
        x[0] = 1.0F;
    } else {
        __syncthreads();
        x[0] = 2.0F;
    }
}

__global__ void k_half_a_warp(float* x) {
    if (threadIdx.x < 16) x[0] = __shfl_xor_sync(0xffffffffu, x[0], 1);
}

__global__ void k_past_shared(float* x) {
    LS_SHARED(float, tile, 32);
    if (threadIdx.x < 33) tile[threadIdx.x] = 1.0F;
    __syncthreads();
    x[threadIdx.x % 32] = tile[threadIdx.x % 32];
}

__global__ void k_reverse(float* x, std::size_t n) {
    LS_DYN_SHARED(float, tile);
    for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) x[i] = tile[n - 1 - i];
}

__global__ void k_sum_of_four(float* sum, const float* x, std::size_t offset) {
    const float4 v = *reinterpret_cast<const float4*>(x + offset);
    *sum = v.x + v.y + v.z + v.w;
}

__global__ void k_divide(int* x, int divisor) {
    x[0] = 7 / divisor;
}

__device__ int deep(int depth) {
    volatile int kilobyte[256];
    kilobyte[depth % 256] = depth;
    return depth == 0 ? 0 : deep(depth - 1) + kilobyte[depth % 256];
}

__global__ void k_recurse(int* x, int depth) {
    x[0] = deep(depth);
}

struct Numbers {
    int rows, columns;
    float factor;
};
struct alignas(16) Padded {
    float factor;  // 12 bytes of nothing behind it
};
struct Hidden {
    int n;
    float* x;
};

__global__ void k_numbers(float* x, Numbers n) {
    x[0] = static_cast<float>(n.rows * n.columns) * n.factor;
}
__global__ void k_padded(float* x, Padded padded) {
    *x = padded.factor;
}
__global__ void k_hidden(float* x, Hidden h) {
    x[0] = h.x[h.n];
}

__global__ void k_warp(int* out, WarpOperation what) {
    const int t = static_cast<int>(threadIdx.x);
    constexpr unsigned all = 0xffffffffu;
    int v = 0;
    if (what == WarpOperation::kXor) v = __shfl_xor_sync(all, 10 * t, 5);
    if (what == WarpOperation::kDown) v = __shfl_down_sync(all, 10 * t, 3);
    if (what == WarpOperation::kUp) v = __shfl_up_sync(all, 10 * t, 3);
    if (what == WarpOperation::kBroadcast) v = __shfl_sync(all, 10 * t, 7);
    if (what == WarpOperation::kBallot) v = static_cast<int>(__ballot_sync(all, t % 3 == 0));
    __syncwarp();
    out[t] = v;
}

__global__ void k_number_threads(int* out) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<int>(100 * block + thread);
}

__global__ void k_nothing() {}

__global__ void k_many_barriers(float* x, int rounds) {
    LS_SHARED(float, tile, 256);
    float v = static_cast<float>(threadIdx.x);
    for (int r = 0; r < rounds; ++r) {
        tile[threadIdx.x] = v;
        __syncthreads();
        v += tile[(threadIdx.x + 1) % 256];
        __syncthreads();
    }
    x[blockIdx.x * 256 + threadIdx.x] = v;
}

}  // namespace

void scale(float* y, const float* x, std::size_t n, float a, cudaStream_t stream) {
    launch(k_scale, blocks_of(n), 256, 0, stream, out(y, n), in(x, n), n, a);
}

void scale_by_four(float* y, std::size_t n, float a, bool with_tail, cudaStream_t stream) {
    launch(k_scale_by_four, blocks_of(n), 256, 0, stream, inout(y, n), n, a, with_tail);
}

void touch(float* x, std::size_t n, std::ptrdiff_t at, cudaStream_t stream) {
    launch(k_touch, 1, 1, 0, stream, inout(x, n), at);
}

void block_sums(float* sums, const float* x, std::size_t n, bool with_barrier, cudaStream_t stream) {
    const std::size_t blocks = (n + 1023) / 1024;
    launch(with_barrier ? k_block_sums<true> : k_block_sums<false>, blocks, 256, 0, stream, out(sums, blocks), in(x, n),
           n);
}

void atomic_sum(float* sum, const float* x, std::size_t n, cudaStream_t stream) {
    launch(k_atomic_sum, blocks_of(n), 256, 0, stream, inout(sum, 1), in(x, n), n);
}

void barrier_below_return(float* x, std::size_t n, bool return_first, cudaStream_t stream) {
    launch(k_barrier_below_return, blocks_of(n), 256, 0, stream, out(x, n), n, return_first);
}

void two_barriers(float* x, cudaStream_t stream) {
    launch(k_two_barriers, 1, 64, 0, stream, out(x, 1));
}

void half_a_warp_shuffles(float* x, cudaStream_t stream) {
    launch(k_half_a_warp, 1, 32, 0, stream, inout(x, 1));
}

void past_shared(float* x, cudaStream_t stream) {
    launch(k_past_shared, 1, 64, 0, stream, out(x, 32));
}

void reverse(float* x, std::size_t n, std::size_t shared, bool opt_in, cudaStream_t stream) {
    if (opt_in) allow_shared(k_reverse, shared);
    launch(k_reverse, 1, 256, shared, stream, inout(x, n), n);
}

void sum_of_four(float* sum, const float* x, std::size_t offset, cudaStream_t stream) {
    launch(k_sum_of_four, 1, 1, 0, stream, out(sum, 1), in(x, offset + 4), offset);
}

void divide(int* x, int divisor, cudaStream_t stream) {
    launch(k_divide, 1, 1, 0, stream, out(x, 1), divisor);
}

void recurse(int* x, int depth, cudaStream_t stream) {
    launch(k_recurse, 1, 1, 0, stream, out(x, 1), depth);
}

void struct_of_numbers(float* x, cudaStream_t stream) {
    launch(k_numbers, 1, 1, 0, stream, out(x, 1), Numbers{3, 5, 0.5F});
}

void struct_with_padding(float* x, cudaStream_t stream) {
    Padded padded{7.5F};
    std::memcpy(reinterpret_cast<char*>(&padded) + 8, &x, sizeof x);
    launch(k_padded, 1, 1, 0, stream, out(x, 1), padded);
}

void struct_with_pointer(float* x, cudaStream_t stream) {
    launch(k_hidden, 1, 1, 0, stream, out(x, 1), Hidden{0, x});
}

void warp_operation(int* out_, WarpOperation what, cudaStream_t stream) {
    launch(k_warp, 1, 32, 0, stream, out(out_, 32), what);
}

void number_threads(int* numbers, dim3 grid, dim3 block, cudaStream_t stream) {
    const std::size_t n = std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z;
    launch(k_number_threads, grid, block, 0, stream, out(numbers, n));
}

void launch_shape(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
    launch(k_nothing, grid, block, shared, stream);
}

void many_barriers(float* x, std::size_t blocks, int rounds, cudaStream_t stream) {
    launch(k_many_barriers, blocks, 256, 0, stream, out(x, blocks * 256), rounds);
}

}  // namespace lockstep::planted
