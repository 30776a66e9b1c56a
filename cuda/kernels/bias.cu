#include "cuda/kernels/bias.h"

#include <algorithm>

#include "cuda/device.h"
#include "cuda/kernels/cast_convert.h"
#include "cuda/kernels/counts.h"
#include "cuda/kernels/finish_sum.h"

namespace lockstep {
namespace {

constexpr int kLanes = 32;       // channels of a block
constexpr int kRowsOfBlock = 8;  // finish_product
constexpr int64_t kMostBlocks = 4096;

// A block: 32 channels x 8 rows, so that memory is read in whole lines, the bias is read once and no element's channel
// needs a division. The fp32 product lies in y already.
__global__ void k_finish_in_place(int64_t rows, int channels, const float* __restrict__ bias, bool relu, float* y) {
    const int c = static_cast<int>(blockIdx.y) * kLanes + static_cast<int>(threadIdx.x);
    if (c >= channels) return;
    const float b = bias != nullptr ? bias[c] : 0.0F;
    for (int64_t row = int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.y; row < rows;
         row += int64_t{gridDim.x} * kRowsOfBlock) {
        y[row * channels + c] = finish_sum(y[row * channels + c], bias != nullptr, b, relu);
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
        y[row * channels + c] = finish_sum(to_float(product[row * channels + c]), bias != nullptr, b, relu);
    }
}

dim3 grid_of(int64_t row_blocks, int channels) {
    return dim3(static_cast<unsigned>(std::min(row_blocks, kMostBlocks)),
                static_cast<unsigned>(ceil_div(channels, kLanes)));
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

}  // namespace lockstep
