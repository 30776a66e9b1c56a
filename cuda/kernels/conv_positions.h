// What the tiled weight gradient of convolutions reads: where the output positions of a slice lie in x and dy, and how
// both travel to shared memory. Device code, included by conv_weights.cu only.
#pragma once

#include <type_traits>

#include "cuda/kernels/conv_tile.h"

namespace lockstep::conv {

// Output rows of a block of positions.
__device__ __forceinline__ int rows_of(const ConvPass& pass, int samples, int rows_per_block, int block) {
    return min(samples * pass.written_h - block * rows_per_block, rows_per_block);
}

template <class T>
__device__ __forceinline__ int slices_of(const ConvPass& pass, int samples, int rows_per_block, int block) {
    return (rows_of(pass, samples, rows_per_block, block) * pass.written_w + T::kDepth - 1) / T::kDepth;
}

// Where a slice's positions lie in x and dy, in shared memory and twice. One thread a position works them out: it walks
// on kDepth positions from slice to slice and so never divides. Its state lies in shared memory, too, since no other
// thread has registers to spare for it.
template <class T>
struct Positions {
    int64_t* x;   // element of the position's first tap, channel 0; may lie before the image
    int64_t* dy;  // of channel 0; -1 behind the end of a block
    int2* base;   // row and column that taps count from
    int4* state;  // sample, row and column of the next position, and how many rows of its block are left
    int2* block;  // its block, and how many slices of it are left

    __device__ __forceinline__ void start(const ConvPass& pass, int samples, int rows_per_block, int index) const {
        const int t = static_cast<int>(threadIdx.x), row = index * rows_per_block, n = row / pass.written_h;
        state[t] =
            wrapped(pass, make_int4(n, row - n * pass.written_h, t, rows_of(pass, samples, rows_per_block, index)));
        block[t] = make_int2(index, slices_of<T>(pass, samples, rows_per_block, index));
    }

    // The next slice into `slot`; nothing behind block end - 1.
    __device__ __forceinline__ void advance(const ConvPass& pass, const ConvClass* cls, int samples, int rows_per_block,
                                            int end, int slot) const {
        const int t = static_cast<int>(threadIdx.x), i = slot * T::kDepth + t;
        if (block[t].y == 0) {
            if (block[t].x + 1 >= end) return;
            start(pass, samples, rows_per_block, block[t].x + 1);
        }
        --block[t].y;
        int4 at = state[t];
        if (at.w > 0) {
            const int h = cls->base_h + at.y * pass.read_step_h, w = cls->base_w + at.z * pass.read_step_w;
            x[i] = ((int64_t{at.x} * pass.read_h + h) * pass.read_w + w) * pass.read_c;
            dy[i] = ((int64_t{at.x} * pass.written_h + at.y) * pass.written_w + at.z) * pass.written_c;
            base[i] = make_int2(h, w);
        } else {
            dy[i] = -1;
            base[i] = make_int2(kNowhere, kNowhere);
        }
        at.z += T::kDepth;
        state[t] = wrapped(pass, at);
    }

  private:
    __device__ static __forceinline__ int4 wrapped(const ConvPass& pass, int4 at) {
        while (at.z >= pass.written_w) {
            at.z -= pass.written_w;
            --at.w;
            if (++at.y == pass.written_h) {
                at.y = 0;
                ++at.x;
            }
        }
        return at;
    }
};

// What a block of threads works on: a tile of one group, and blocks of positions [block, end). In shared memory, to be
// read again where it is needed.
struct Task {
    int64_t gradient;  // element of the tile's first weight, the group's first channel
    int group, first_term, first_column;
    int block, end;
    int exactly;  // whether a dy of the tile's channels may not be finite
};

// The slice of x: a thread keeps its weight (kQuads: 4 of one tap) and takes it from position to position.
template <class T, bool kQuads>
class TapLoader {
  public:
    __device__ __forceinline__ TapLoader(const ConvPass& pass, int group, const float* x, const int4* taps, int first)
        : x_(x), tap_(first + place() < pass.terms ? taps[first + place()] : make_int4(kNowhere, kNowhere, 0, 0)) {
        tap_.z += group * pass.depth;
    }

    __device__ __forceinline__ void load(const ConvPass& pass, const Positions<T>& positions, int slot) {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            clear(values_[i]);
            if (!used(i)) continue;
            const int p = slot * T::kDepth + term_of(i);
            const int2 base = positions.base[p];
            if (inside(base.x, base.y, tap_, pass)) get(x_ + (positions.x[p] + tap_.z), values_[i]);
        }
    }

    __device__ __forceinline__ void store(float* slice) const {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            if (used(i)) put(values_[i], slice + term_of(i) * T::kRowStride + place());
        }
    }

  private:
    static constexpr int kWidth = T::kRows / (kQuads ? 4 : 1);  // of a position
    static constexpr int kAll = kWidth * T::kDepth, kLoads = (kAll + T::kThreads - 1) / T::kThreads;
    static_assert(T::kThreads % kWidth == 0, "a thread's weight is the same at every position");

    __device__ static __forceinline__ int index(int i) { return static_cast<int>(threadIdx.x) + i * T::kThreads; }
    __device__ static __forceinline__ bool used(int i) { return kAll % T::kThreads == 0 || index(i) < kAll; }
    __device__ static __forceinline__ int term_of(int i) { return index(i) / kWidth; }
    __device__ static __forceinline__ int place() { return static_cast<int>(threadIdx.x) % kWidth * (kQuads ? 4 : 1); }

    __device__ static __forceinline__ void clear(float& value) { value = 0.0F; }
    __device__ static __forceinline__ void clear(float4& value) { value = make_float4(0.0F, 0.0F, 0.0F, 0.0F); }
    __device__ static __forceinline__ void get(const float* from, float& value) { value = __ldg(from); }
    __device__ static __forceinline__ void get(const float* from, float4& value) {
        value = __ldg(reinterpret_cast<const float4*>(from));
    }
    __device__ static __forceinline__ void put(float value, float* to) { *to = value; }
    __device__ static __forceinline__ void put(const float4& value, float* to) {
        *reinterpret_cast<float4*>(to) = value;
    }

    const float* x_;
    int4 tap_;
    std::conditional_t<kQuads, float4, float> values_[kLoads];
};

// The slice of dy.
template <class T>
class GradientLoader {
  public:
    __device__ __forceinline__ GradientLoader(const float* dy, bool vector) : dy_(dy), vector_(vector) {}

    __device__ __forceinline__ void load(const ConvPass& pass, const Task& task, const Positions<T>& positions,
                                         int slot) {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            float4& quad = values_[i];
            quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            const int column = task.first_column + place_of(i), left = pass.columns - column;
            if (!used(i) || left <= 0) continue;
            const int64_t at = positions.dy[slot * T::kDepth + term_of(i)];
            if (at < 0) continue;
            const float* from = dy_ + (at + task.group * pass.columns + column);
            if (vector_) {
                quad = __ldg(reinterpret_cast<const float4*>(from));
            } else {
                quad.x = __ldg(from);
                if (left > 1) quad.y = __ldg(from + 1);
                if (left > 2) quad.z = __ldg(from + 2);
                if (left > 3) quad.w = __ldg(from + 3);
            }
        }
    }

    __device__ __forceinline__ void store(float* slice) const {
        LS_UNROLL for (int i = 0; i < kLoads; ++i) {
            if (used(i)) *reinterpret_cast<float4*>(slice + term_of(i) * T::kColumnStride + place_of(i)) = values_[i];
        }
    }

  private:
    static constexpr int kAll = T::kColumns / 4 * T::kDepth, kLoads = (kAll + T::kThreads - 1) / T::kThreads;
    __device__ static __forceinline__ int index(int i) { return static_cast<int>(threadIdx.x) + i * T::kThreads; }
    __device__ static __forceinline__ bool used(int i) { return kAll % T::kThreads == 0 || index(i) < kAll; }
    __device__ static __forceinline__ int term_of(int i) { return index(i) / (T::kColumns / 4); }
    __device__ static __forceinline__ int place_of(int i) { return 4 * (index(i) % (T::kColumns / 4)); }

    const float* dy_;
    bool vector_;
    float4 values_[kLoads];
};

}  // namespace lockstep::conv
