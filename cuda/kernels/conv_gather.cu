// Forward and data gradient of a convolution as a matrix product: rows are written pixels, columns output channels of
// one group, terms (tap, channel). A slice of pixels is gathered through the table of taps, a slice of weights is read
// as packed; both wait in shared memory twice, so that the next one travels while this one is multiplied.
#include <type_traits>

#include "cuda/kernels/conv_tile.h"

namespace lockstep {
namespace conv {

// The pixels' part of a slice on its way to shared memory. kQuads: 4 channels at a time, which lie in one tap; else one
// term a thread and pixel, neighbouring threads on neighbouring pixels.
template <class T, bool kQuads>
class PixelLoader {
  public:
    __device__ __forceinline__ PixelLoader(const ConvPass& pass, const ConvClass& cls, int samples, int group,
                                           int first, const float* read, const int4* taps)
        : read_(read), taps_(taps) {
        LS_UNROLL for (int i = 0; i < kPixels; ++i) {
            const Pixel pixel = pixel_of(pass, cls, samples, group, first + place_of(i));
            h_[i] = pixel.h;
            w_[i] = pixel.w;
            at_[i] = pixel.read;
        }
    }

    __device__ __forceinline__ void load(const ConvPass& pass, int begin, int end) {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            const int term = begin + term_of(i), p = kQuads ? i : 0;
            clear(values_[i]);
            if (term >= end) continue;
            const int4 tap = __ldg(taps_ + term);
            if (inside(h_[p], w_[p], tap, pass)) get(read_ + (at_[p] + tap.z), values_[i]);
        }
    }

    __device__ __forceinline__ void store(float* slice) const {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) put(values_[i], slice + term_of(i) * T::kRowStride + place_of(i));
    }

  private:
    static constexpr int kLoads = T::kRows * T::kDepth / (kQuads ? 4 : 1) / T::kThreads;
    static constexpr int kPixels = kQuads ? kLoads : 1;
    static_assert(kQuads || T::kThreads % T::kRows == 0, "a thread's terms belong to one pixel");
    static_assert(kLoads * T::kThreads * (kQuads ? 4 : 1) == T::kRows * T::kDepth);

    // Two quads of a pixel go to neighbouring threads: a sector of 32 bytes is read whole.
    __device__ static __forceinline__ int index(int i) { return static_cast<int>(threadIdx.x) + i * T::kThreads; }
    __device__ static __forceinline__ int term_of(int i) {
        return kQuads ? 4 * (index(i) % 2 + 2 * (index(i) / (2 * T::kRows))) : index(i) / T::kRows;
    }
    __device__ static __forceinline__ int place_of(int i) {
        return kQuads ? index(i) / 2 % T::kRows : index(i) % T::kRows;
    }

    __device__ static __forceinline__ void clear(float& value) { value = 0.0F; }
    __device__ static __forceinline__ void clear(float4& value) { value = make_float4(0.0F, 0.0F, 0.0F, 0.0F); }
    __device__ static __forceinline__ void get(const float* from, float& value) { value = __ldg(from); }
    __device__ static __forceinline__ void get(const float* from, float4& value) {
        value = __ldg(reinterpret_cast<const float4*>(from));
    }
    __device__ static __forceinline__ void put(float value, float* to) { *to = value; }
    __device__ static __forceinline__ void put(const float4& value, float* to) {
        to[0] = value.x;
        to[T::kRowStride] = value.y;
        to[2 * T::kRowStride] = value.z;
        to[3 * T::kRowStride] = value.w;
    }

    const float* read_;
    const int4* taps_;
    int h_[kPixels], w_[kPixels];
    int64_t at_[kPixels];
    std::conditional_t<kQuads, float4, float> values_[kLoads];
};

// The weights' part: rows of the packed panel, always quads.
template <class T>
class PanelLoader {
  public:
    /// `first`: the element of the panel's first row where the tile begins.
    __device__ __forceinline__ PanelLoader(const float* packed, int first, int left)
        : packed_(packed), first_(first), left_(left) {}

    __device__ __forceinline__ void load(const ConvPass& pass, int begin, int end) {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            const int term = begin + term_of(i);
            values_[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            if (used(i) && term < end && place_of(i) < left_) {
                const float* from = packed_ + (first_ + term * pass.panel + place_of(i));
                values_[i] = __ldg(reinterpret_cast<const float4*>(from));
            }
        }
    }

    __device__ __forceinline__ void store(float* slice) const {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            if (used(i)) *reinterpret_cast<float4*>(slice + term_of(i) * T::kColumnStride + place_of(i)) = values_[i];
        }
    }

  private:
    static constexpr int kQuads = T::kColumns * T::kDepth / 4;
    static constexpr int kLoads = (kQuads + T::kThreads - 1) / T::kThreads;
    __device__ static __forceinline__ int index(int i) { return static_cast<int>(threadIdx.x) + i * T::kThreads; }
    __device__ static __forceinline__ bool used(int i) { return kQuads % T::kThreads == 0 || index(i) < kQuads; }
    __device__ static __forceinline__ int term_of(int i) { return index(i) / (T::kColumns / 4); }
    __device__ static __forceinline__ int place_of(int i) { return 4 * (index(i) % (T::kColumns / 4)); }

    const float* packed_;
    int first_, left_;
    float4 values_[kLoads];
};

// A tile by the definition itself: taps outside the image are left out, whatever the weights are.
template <class T>
__device__ __forceinline__ void gather_exactly(const ConvPass& pass, const ConvClass& cls, int samples, int group,
                                               int first_row, int first_column, const int2* blocks, const int4* taps,
                                               const float* read, const float* packed, const float* bias, bool relu,
                                               float* written) {
    LS_LOOP for (int i = static_cast<int>(threadIdx.x); i < T::kRows * T::kColumns; i += T::kThreads) {
        const int column = first_column + i % T::kColumns;
        const Pixel pixel = pixel_of(pass, cls, samples, group, first_row + i / T::kColumns);
        if (pixel.written < 0 || column >= pass.columns) continue;
        const float* const panel = packed + (group * pass.terms * pass.panel + column);
        float total = 0.0F;
        LS_LOOP for (int block = cls.blocks_begin; block < cls.blocks_end; ++block) {
            float chain = 0.0F;
            LS_LOOP for (int term = blocks[block].x; term < blocks[block].y; ++term) {
                const int4 tap = taps[term];
                if (inside(pixel.h, pixel.w, tap, pass))
                    chain = __fmaf_rn(read[pixel.read + tap.z], panel[term * pass.panel], chain);
            }
            total = total + chain;
        }
        written[pixel.written + column] = finish_sum(total, bias, group * pass.columns + column, relu);
    }
}

// A block of threads: one tile of one group and class. Sums of more than one block of terms lie in `written` meanwhile,
// which costs a read and a write of the output every 512 terms and frees the registers of a second tile.
template <class T, bool kQuads>
__global__ void __launch_bounds__(T::kThreads, kQuads ? T::kBlocks : T::kBlocks - 1)
    k_gather(ConvPass pass, int samples, int tiles_down, int tiles_across, const ConvClass* __restrict__ classes,
             const int2* __restrict__ blocks, const int4* __restrict__ taps, const float* __restrict__ read,
             const float* __restrict__ packed, const int* __restrict__ nonfinite, const float* __restrict__ bias,
             bool relu, bool vector, float* __restrict__ written) {
    LS_SHARED(float4, slice_memory, T::kSliceQuads);
    LS_SHARED(int64_t, written_at, T::kRows);
    LS_SHARED(int, tile_at, 2);  // read again where needed, so that no register holds them meanwhile
    const Slices<T> slices{reinterpret_cast<float*>(slice_memory)};

    int rest = static_cast<int>(blockIdx.x);
    const int first_column = rest % tiles_across * T::kColumns;
    rest /= tiles_across;
    const int group = rest % pass.groups;
    rest /= pass.groups;
    const int first_row = rest % tiles_down * T::kRows;
    const ConvClass cls = classes[rest / tiles_down];
    if (first_row >= samples * cls.count_h * cls.count_w) return;  // the whole block: a class of fewer pixels

    if (*nonfinite != 0) {
        gather_exactly<T>(pass, cls, samples, group, first_row, first_column, blocks, taps, read, packed, bias, relu,
                          written);
        return;
    }
    for (int r = static_cast<int>(threadIdx.x); r < T::kRows; r += T::kThreads)
        written_at[r] = pixel_of(pass, cls, samples, group, first_row + r).written;
    if (threadIdx.x == 0) {
        tile_at[0] = first_column;
        tile_at[1] = group * pass.columns;
    }
    PixelLoader<T, kQuads> pixels(pass, cls, samples, group, first_row, read, taps);
    PanelLoader<T> weights(packed, group * pass.terms * pass.panel + first_column, pass.panel - first_column);
    const Place<T> place;
    Outputs<T> chain;
    clear<T>(chain);
    int block = cls.blocks_begin, buffer = 0;
    const int blocks_end = cls.blocks_end;
    int2 range = blocks[block];
    int term = range.x;
    bool first = true;
    pixels.load(pass, term, range.y);
    weights.load(pass, term, range.y);
    for (;;) {
        pixels.store(slices.rows(buffer));
        weights.store(slices.columns(buffer));
        __syncthreads();  // and the slice before this one has been multiplied by all
        bool ends = false;
        term += T::kDepth;
        if (term >= range.y) {
            ends = true;
            if (++block < blocks_end) {
                range = blocks[block];
                term = range.x;
            }
        }
        const bool more = block < blocks_end;
        if (more) {
            pixels.load(pass, term, range.y);
            weights.load(pass, term, range.y);
        }
        multiply_slice<T>(slices.rows(buffer), slices.columns(buffer), place, chain);
        if (ends) {
            LS_UNROLL for (int r = 0; r < T::kOwnRows; ++r) {
                const int64_t at = written_at[place.row_of(r)];
                if (at < 0) continue;
                const auto finish = [&](float sum, int column) {
                    return more ? sum : finish_sum(sum, bias, tile_at[1] + column, relu);
                };
                add_to_row<T>(chain[r], place, written + at, tile_at[0], pass.columns, vector, first, finish);
            }
            clear<T>(chain);
            first = false;
        }
        if (!more) break;
        buffer ^= 1;
    }
}

}  // namespace conv

void conv_gather(ConvTile tile, const ConvPass& pass, const ConvTables& tables, const ConvPacked& packed,
                 const ConvGather& run, cudaStream_t stream) {
    using namespace conv;
    const ConvTileShape shape = conv_tile_shape(tile);
    const auto down = static_cast<int>(ceil_div(int64_t{run.rows} * pass.class_pixels, shape.rows));
    const auto across = static_cast<int>(ceil_div(pass.columns, shape.columns));
    const auto grid = static_cast<unsigned>(int64_t{down} * across * pass.groups * pass.classes);
    const bool quads = pass.depth % 4 == 0 && in_quads(run.read, pass.read_c);
    const bool vector = pass.columns % 4 == 0 && in_quads(run.written, pass.written_c);
    const auto start = [&](auto kernel, int threads) {
        launch(kernel, grid, dim3(static_cast<unsigned>(threads)), 0, stream, pass, run.rows, down, across,
               in(tables.classes, count(pass.classes)), in(tables.blocks, count(pass.blocks)),
               in(tables.taps, count(pass.terms)),
               in(run.read, count(int64_t{run.rows} * pass.read_h * pass.read_w * pass.read_c)),
               in(packed.weights, count(conv_packed_elements(pass, false))), in(packed.nonfinite, 1),
               in(run.bias, run.bias ? count(pass.written_c) : 0), run.relu, vector,
               out(run.written, count(int64_t{run.rows} * pass.written_h * pass.written_w * pass.written_c)));
    };
    with_tile(tile, [&]<class T>() {
        if (quads) {
            start(k_gather<T, true>, T::kThreads);
        } else {
            start(k_gather<T, false>, T::kThreads);
        }
    });
}

}  // namespace lockstep
