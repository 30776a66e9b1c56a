// Convolutions whose groups have few channels (depthwise ones have one), where tiles of a matrix product would be
// mostly empty: channels on the lanes, a thread owns several outputs of its channel and visits their taps one by one.
// Taps outside the image are left out.
#include "cuda/kernels/conv_tile.h"

namespace lockstep {
namespace conv {

constexpr int kThreads = 128;
constexpr int kPixels = 4;   // of a thread, so that a weight is loaded once for them
constexpr int kWeights = 4;  // of a thread, so that a dy is loaded once for them

// 1 channel, or 4 neighbouring ones of depthwise groups.
template <int kChannels>
struct Lane;
template <>
struct Lane<1> {
    float v[1];
    __device__ __forceinline__ static Lane load(const float* from) { return {{__ldg(from)}}; }
    __device__ __forceinline__ void store(float* to) const { to[0] = v[0]; }
};
template <>
struct Lane<4> {
    float v[4];
    __device__ __forceinline__ static Lane load(const float* from) {
        const float4 quad = __ldg(reinterpret_cast<const float4*>(from));
        return {{quad.x, quad.y, quad.z, quad.w}};
    }
    __device__ __forceinline__ void store(float* to) const {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    }
};

// threadIdx.x and blockIdx.y: channels; threadIdx.y and blockIdx.x: pixels of a class.
template <int kChannels>
__global__ void __launch_bounds__(kThreads)
    k_gather_direct(ConvPass pass, int samples, int tiles, const ConvClass* __restrict__ classes,
                    const int2* __restrict__ blocks, const int4* __restrict__ taps, const float* __restrict__ read,
                    const float* __restrict__ packed, const float* __restrict__ bias, bool relu,
                    float* __restrict__ written) {
    const int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * kChannels;
    if (channel >= pass.written_c) return;
    const int tile = static_cast<int>(blockIdx.x) % tiles;
    const ConvClass cls = classes[static_cast<int>(blockIdx.x) / tiles];
    const int first = (tile * static_cast<int>(blockDim.y) + static_cast<int>(threadIdx.y)) * kPixels;
    const int read_channel = channel / pass.columns * pass.depth;
    Pixel pixels[kPixels];
    Lane<kChannels> total[kPixels], chain[kPixels];
    LS_UNROLL for (int p = 0; p < kPixels; ++p) {
        pixels[p] = pixel_of(pass, cls, samples, 0, first + p);
        LS_UNROLL for (int c = 0; c < kChannels; ++c) total[p].v[c] = 0.0F;
    }
    for (int block = cls.blocks_begin; block < cls.blocks_end; ++block) {
        const int2 range = blocks[block];
        LS_UNROLL for (int p = 0; p < kPixels; ++p) {
            LS_UNROLL for (int c = 0; c < kChannels; ++c) chain[p].v[c] = 0.0F;
        }
        for (int term = range.x; term < range.y; ++term) {
            const int4 tap = __ldg(taps + term);
            const auto weight = Lane<kChannels>::load(packed + (term * pass.panel + channel));
            LS_UNROLL for (int p = 0; p < kPixels; ++p) {
                if (!inside(pixels[p].h, pixels[p].w, tap, pass)) continue;
                const auto x = Lane<kChannels>::load(read + (pixels[p].read + tap.z + read_channel));
                LS_UNROLL for (int c = 0; c < kChannels; ++c) chain[p].v[c] =
                    __fmaf_rn(x.v[c], weight.v[c], chain[p].v[c]);
            }
        }
        LS_UNROLL for (int p = 0; p < kPixels; ++p) {
            LS_UNROLL for (int c = 0; c < kChannels; ++c) total[p].v[c] = total[p].v[c] + chain[p].v[c];
        }
    }
    LS_UNROLL for (int p = 0; p < kPixels; ++p) {
        if (pixels[p].written < 0) continue;
        LS_UNROLL for (int c = 0; c < kChannels; ++c) total[p].v[c] =
            finish_sum(total[p].v[c], bias, channel + c, relu);
        total[p].store(written + (pixels[p].written + channel));
    }
}

// threadIdx.x: output channels; threadIdx.y: groups of kWeights weights of a channel; blockIdx.x: both, and blocks of
// positions.
__global__ void __launch_bounds__(kThreads)
    k_weights_direct(ConvPass pass, int samples, int rows_per_block, int first_block, int blocks, bool in_order,
                     int tiles_across, int tiles_down, const ConvClass* __restrict__ classes,
                     const int4* __restrict__ taps, const float* __restrict__ x, const float* __restrict__ dy,
                     float* __restrict__ gradient) {
    int rest = static_cast<int>(blockIdx.x);
    const int channel = static_cast<int>(rest % tiles_across * blockDim.x + threadIdx.x);
    rest /= tiles_across;
    const int first = static_cast<int>(rest % tiles_down * blockDim.y + threadIdx.y) * kWeights;
    const int slot = rest / tiles_down;
    if (channel >= pass.written_c || first >= pass.terms) return;
    const ConvClass cls = classes[0];
    int4 own[kWeights];
    float total[kWeights];
    LS_UNROLL for (int i = 0; i < kWeights; ++i) {
        own[i] = first + i < pass.terms ? taps[first + i] : make_int4(kNowhere, kNowhere, 0, 0);
        own[i].z += channel / pass.columns * pass.depth;
        total[i] = 0.0F;
    }
    const int rows = samples * pass.written_h;
    const int begin = first_block + (in_order ? 0 : slot), end = in_order ? first_block + blocks : begin + 1;
    for (int block = begin; block < end; ++block) {
        float chain[kWeights] = {};
        int row = block * rows_per_block, n = row / pass.written_h, i = row - n * pass.written_h;
        const int last = min(rows, row + rows_per_block);
        for (; row < last; ++row) {
            const int h = cls.base_h + i * pass.read_step_h;
            const int64_t image_row = (int64_t{n} * pass.read_h + h) * pass.read_w;
            const int64_t written_row = int64_t{row} * pass.written_w;
            for (int j = 0; j < pass.written_w; ++j) {
                const int w = cls.base_w + j * pass.read_step_w;
                const float y = __ldg(dy + ((written_row + j) * pass.written_c + channel));
                const int64_t pixel = (image_row + w) * pass.read_c;
                LS_UNROLL for (int k = 0; k < kWeights; ++k) {
                    if (inside(h, w, own[k], pass)) chain[k] = __fmaf_rn(__ldg(x + (pixel + own[k].z)), y, chain[k]);
                }
            }
            if (++i == pass.written_h) {
                i = 0;
                ++n;
            }
        }
        LS_UNROLL for (int k = 0; k < kWeights; ++k) total[k] = total[k] + chain[k];
    }
    float* const to = gradient + ((int64_t{in_order ? 0 : slot} * pass.terms + first) * pass.written_c + channel);
    LS_UNROLL for (int k = 0; k < kWeights; ++k) {
        if (first + k < pass.terms) to[int64_t{k} * pass.written_c] = total[k];
    }
}

// Lanes for `channels`: not many more than there are.
unsigned lanes_for(int channels) {
    unsigned lanes = 32;
    while (lanes > 4 && static_cast<int>(lanes / 2) >= channels) lanes /= 2;
    return lanes;
}

}  // namespace conv

void conv_gather_direct(const ConvPass& pass, const ConvTables& tables, const ConvPacked& packed, const ConvGather& run,
                        cudaStream_t stream) {
    using namespace conv;
    const bool depthwise = pass.depth == 1 && pass.columns == 1;
    const bool quads = depthwise && in_quads(run.read, pass.read_c) && in_quads(run.written, pass.written_c);
    const int channels = pass.written_c / (quads ? 4 : 1);
    const unsigned lanes = lanes_for(channels), pixels = kThreads / lanes;
    const auto tiles = static_cast<int>(ceil_div(int64_t{run.rows} * pass.class_pixels, int64_t{pixels} * kPixels));
    const dim3 grid(static_cast<unsigned>(int64_t{tiles} * pass.classes),
                    static_cast<unsigned>(ceil_div(channels, lanes)));
    const auto start = [&](auto kernel) {
        launch(kernel, grid, dim3(lanes, pixels), 0, stream, pass, run.rows, tiles,
               in(tables.classes, count(pass.classes)), in(tables.blocks, count(pass.blocks)),
               in(tables.taps, count(pass.terms)),
               in(run.read, count(int64_t{run.rows} * pass.read_h * pass.read_w * pass.read_c)),
               in(packed.weights, count(conv_packed_elements(pass, true))),
               in(run.bias, run.bias ? count(pass.written_c) : 0), run.relu,
               out(run.written, count(int64_t{run.rows} * pass.written_h * pass.written_w * pass.written_c)));
    };
    if (quads) {
        start(k_gather_direct<4>);
    } else {
        start(k_gather_direct<1>);
    }
}

void conv_weights_direct(const ConvPass& pass, const ConvTables& tables, const ConvWeights& run, cudaStream_t stream) {
    using namespace conv;
    const unsigned lanes = lanes_for(pass.written_c), weights = kThreads / lanes;
    const auto across = static_cast<int>(ceil_div(pass.written_c, lanes));
    const auto down = static_cast<int>(ceil_div(pass.terms, int64_t{weights} * kWeights));
    const int64_t gradients = run.in_order ? 1 : run.blocks;
    launch(k_weights_direct, static_cast<unsigned>(gradients * across * down), dim3(lanes, weights), 0, stream, pass,
           run.rows, run.rows_per_block, run.first_block, run.blocks, run.in_order, across, down, in(tables.classes, 1),
           in(tables.taps, count(pass.terms)),
           in(run.x, count(int64_t{run.rows} * pass.read_h * pass.read_w * pass.read_c)),
           in(run.dy, count(int64_t{run.rows} * pass.written_h * pass.written_w * pass.written_c)),
           out(run.gradient, count(gradients * pass.terms * pass.written_c)));
}

}  // namespace lockstep
