// Bias and relu behind a product, and sums over rows. Channels lie on lanes, so that memory is read in whole lines.
#include "cuda/kernels/bias.h"

#include <algorithm>

#include "cuda/device.h"
#include "cuda/kernels/cast_convert.h"
#include "cuda/kernels/sum_rows.h"

namespace lockstep {
namespace {

constexpr int kLanes = 32;       // channels of a block
constexpr int kRowsOfBlock = 8;  // finish_product
constexpr int kSumRows = 256;    // rows of a partial sum
constexpr int kChains = 4;
constexpr int64_t kMostBlocks = 4096;

__device__ inline float finish(float x, bool has_bias, float bias, bool relu) {
    if (has_bias) x = x + bias;
    return relu && x <= 0 ? 0.0F : x;
}

// A block: 32 channels x 8 rows, so that the bias is read once and no element's channel needs a division. The fp32
// product lies in y already.
__global__ void k_finish_in_place(int64_t rows, int channels, const float* __restrict__ bias, bool relu, float* y) {
    const int c = static_cast<int>(blockIdx.y) * kLanes + static_cast<int>(threadIdx.x);
    if (c >= channels) return;
    const float b = bias != nullptr ? bias[c] : 0.0F;
    for (int64_t row = int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.y; row < rows;
         row += int64_t{gridDim.x} * kRowsOfBlock) {
        y[row * channels + c] = finish(y[row * channels + c], bias != nullptr, b, relu);
    }
}

template <class T>
__global__ void k_finish(int64_t rows, int channels, const T* __restrict__ product, const float* __restrict__ bias,
                         bool relu, float* __restrict__ y) {
    const int c = static_cast<int>(blockIdx.y) * kLanes + static_cast<int>(threadIdx.x);
    if (c >= channels) return;
    const float b = bias != nullptr ? bias[c] : 0.0F;
    for (int64_t row = int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.y; row < rows;
         row += int64_t{gridDim.x} * kRowsOfBlock) {
        y[row * channels + c] = finish(to_float(product[row * channels + c]), bias != nullptr, b, relu);
    }
}

// One block of rows and 32 channels: a thread for each channel and chain. Blocks of rows are dealt to gridDim.x.
__global__ void k_channel_partials(int64_t rows, int channels, const float* __restrict__ x,
                                   float* __restrict__ partials) {
    LS_SHARED(float, chains, kChains* kLanes);
    const int lane = static_cast<int>(threadIdx.x), chain = static_cast<int>(threadIdx.y);
    const int c = static_cast<int>(blockIdx.y) * kLanes + lane;
    const int64_t blocks = (rows + kSumRows - 1) / kSumRows;
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        const int64_t end = block * kSumRows + kSumRows < rows ? block * kSumRows + kSumRows : rows;
        float sum = 0;
        if (c < channels) {
            for (int64_t row = block * kSumRows + chain; row < end; row += kChains) sum = sum + x[row * channels + c];
        }
        chains[chain * kLanes + lane] = sum;
        __syncthreads();
        if (chain == 0 && c < channels) {
            partials[block * channels + c] =
                (sum + chains[kLanes + lane]) + (chains[2 * kLanes + lane] + chains[3 * kLanes + lane]);
        }
        __syncthreads();  // before the next block of rows overwrites the chains
    }
}

__global__ void k_add_partials(int64_t blocks, int channels, const float* __restrict__ partials,
                               float* __restrict__ sums) {
    const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (c < channels) sums[c] = sum_rows(partials + c, blocks, channels);
}

std::size_t count(int64_t n) {
    return static_cast<std::size_t>(n);
}

unsigned ceil_div(int64_t n, int64_t d) {
    return static_cast<unsigned>((n + d - 1) / d);
}

dim3 grid_of(int64_t row_blocks, int channels) {
    return dim3(static_cast<unsigned>(std::min(row_blocks, kMostBlocks)), ceil_div(channels, kLanes));
}

template <class T>
void launch_finish(int64_t rows, int channels, const void* product, const float* bias, bool relu, float* y,
                   cudaStream_t stream) {
    launch(k_finish<T>, grid_of(ceil_div(rows, kRowsOfBlock), channels), dim3(kLanes, kRowsOfBlock), 0, stream, rows,
           channels, in(static_cast<const T*>(product), count(rows * channels)), in(bias, bias ? count(channels) : 0),
           relu, out(y, count(rows * channels)));
}

}  // namespace

void finish_product(NumberFormat format, int64_t rows, int channels, const void* product, const float* bias, bool relu,
                    float* y, cudaStream_t stream) {
    if (rows == 0) return;
    switch (format) {
        case NumberFormat::kFp32:
            if (product != y) return launch_finish<float>(rows, channels, product, bias, relu, y, stream);
            if (bias == nullptr && !relu) return;
            launch(k_finish_in_place, grid_of(ceil_div(rows, kRowsOfBlock), channels), dim3(kLanes, kRowsOfBlock), 0,
                   stream, rows, channels, in(bias, bias ? count(channels) : 0), relu,
                   inout(y, count(rows * channels)));
            return;
        case NumberFormat::kBf16:
            return launch_finish<__nv_bfloat16>(rows, channels, product, bias, relu, y, stream);
        case NumberFormat::kFp16:
            return launch_finish<__half>(rows, channels, product, bias, relu, y, stream);
    }
}

int64_t channel_partials(int64_t rows, int channels) {
    return int64_t{ceil_div(rows, kSumRows)} * channels;
}

void channel_sums(int64_t rows, int channels, const float* x, float* partials, float* sums, cudaStream_t stream) {
    const int64_t blocks = ceil_div(rows, kSumRows);
    launch(k_channel_partials, grid_of(blocks, channels), dim3(kLanes, kChains), 0, stream, rows, channels,
           in(x, count(rows * channels)), out(partials, count(blocks * channels)));
    launch(k_add_partials, ceil_div(channels, 128), 128, 0, stream, blocks, channels,
           in(partials, count(blocks * channels)), out(sums, count(channels)));
}

}  // namespace lockstep
