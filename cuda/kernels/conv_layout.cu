// The order of a convolution's numbers in memory: weights packed for the passes that read them, blocks of a weight
// gradient added, and a gradient turned into the weights' order.
#include <algorithm>

#include "cuda/kernels/conv_tile.h"

namespace lockstep {
namespace conv {

constexpr int kLanes = 32, kOthers = 8;

// A thread: one written channel and one channel of a group that is read, all taps. Of W, [out][in/groups][taps], a
// thread reads a run; rows of the packed weights are written side by side.
__global__ void __launch_bounds__(kLanes* kOthers)
    k_pack(ConvPass pass, bool direct, bool backward, int taps, const int* __restrict__ tap_places,
           const float* __restrict__ w, float* __restrict__ packed, int* __restrict__ nonfinite) {
    const int channel = static_cast<int>(blockIdx.x * kLanes + threadIdx.x);
    const int depth = static_cast<int>(blockIdx.y * kOthers + threadIdx.y);
    if (channel >= pass.written_c || depth >= pass.depth) return;
    const int group = channel / pass.columns, column = channel - group * pass.columns;
    const int64_t out = backward ? group * pass.depth + depth : channel, in = backward ? column : depth;
    const float* const from = w + (out * (backward ? pass.columns : pass.depth) + in) * taps;
    float* const to = packed + (direct ? channel : int64_t{group} * pass.terms * pass.panel + column);
    bool all_finite = true;
    for (int tap = 0; tap < taps; ++tap) {
        const int place = tap_places[tap];
        if (place < 0) continue;
        const float weight = from[tap];
        all_finite = all_finite && finite(weight);
        to[(int64_t{place} * pass.depth + depth) * pass.panel] = weight;
    }
    if (!all_finite) *nonfinite = 1;  // by whoever finds one: the same value
}

__global__ void __launch_bounds__(256) k_add_blocks(int64_t blocks, int64_t elements, int64_t quads, bool from_zero,
                                                    const float* __restrict__ parts, float* __restrict__ sum) {
    const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = first; i < quads; i += step) {
        float4* const to = reinterpret_cast<float4*>(sum) + i;
        float4 total = from_zero ? make_float4(0.0F, 0.0F, 0.0F, 0.0F) : *to;
        for (int64_t block = 0; block < blocks; ++block) {
            const float4 part = __ldg(reinterpret_cast<const float4*>(parts + block * elements) + i);
            total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
        }
        *to = total;
    }
    for (int64_t i = 4 * quads + first; i < elements; i += step) {
        float total = from_zero ? 0.0F : sum[i];
        for (int64_t block = 0; block < blocks; ++block) total = total + parts[block * elements + i];
        sum[i] = total;
    }
}

// A thread: one output channel and one input channel of its group, all taps.
__global__ void __launch_bounds__(kLanes* kOthers)
    k_store_gradient(int in_of_group, int out_channels, int taps, const float* __restrict__ leaf,
                     float* __restrict__ dw, float* __restrict__ db) {
    const int out = static_cast<int>(blockIdx.x * kLanes + threadIdx.x);
    const int in = static_cast<int>(blockIdx.y * kOthers + threadIdx.y);
    if (out >= out_channels || in >= in_of_group) return;
    for (int tap = 0; tap < taps; ++tap) {
        dw[(int64_t{out} * in_of_group + in) * taps + tap] =
            leaf[(int64_t{tap} * in_of_group + in) * out_channels + out];
    }
    if (db != nullptr && in == 0) db[out] = leaf[int64_t{taps} * in_of_group * out_channels + out];
}

dim3 grid_of(int channels, int others) {
    return dim3(static_cast<unsigned>(ceil_div(channels, kLanes)), static_cast<unsigned>(ceil_div(others, kOthers)));
}

}  // namespace conv

int64_t conv_packed_elements(const ConvPass& pass, bool direct) {
    return int64_t{direct ? 1 : pass.groups} * pass.terms * pass.panel;
}

void conv_pack(const ConvPass& pass, bool direct, bool backward, int taps, const int* tap_places, const float* w,
               float* weights, int* nonfinite, cudaStream_t stream) {
    using namespace conv;
    const int64_t elements = int64_t{pass.written_c} * pass.depth * taps;
    CUDA_CHECK(cudaMemsetAsync(nonfinite, 0, sizeof(int), stream));
    launch(k_pack, grid_of(pass.written_c, pass.depth), dim3(kLanes, kOthers), 0, stream, pass, direct, backward, taps,
           in(tap_places, count(taps)), in(w, count(elements)), out(weights, count(conv_packed_elements(pass, direct))),
           out(nonfinite, 1));
}

void conv_add_blocks(int64_t blocks, int64_t elements, bool from_zero, const float* parts, float* sum,
                     cudaStream_t stream) {
    using namespace conv;
    const int64_t quads = elements % 4 == 0 && in_quads(parts, 4) && in_quads(sum, 4) ? elements / 4 : 0;
    const int64_t threads = quads > 0 ? quads : elements;
    launch(k_add_blocks, static_cast<unsigned>(std::min<int64_t>(ceil_div(threads, 256), 1 << 16)), dim3(256), 0,
           stream, blocks, elements, quads, from_zero, in(parts, count(blocks * elements)),
           inout(sum, count(elements)));
}

void conv_store_gradient(int in_of_group, int out_channels, int taps, const float* leaf, float* dw, float* db,
                         cudaStream_t stream) {
    using namespace conv;
    const int64_t weights = int64_t{in_of_group} * out_channels * taps;
    launch(k_store_gradient, grid_of(out_channels, in_of_group), dim3(kLanes, kOthers), 0, stream, in_of_group,
           out_channels, taps, in(leaf, count(weights + (db ? out_channels : 0))), out(dw, count(weights)),
           out(db, db ? count(out_channels) : 0));
}

}  // namespace lockstep
