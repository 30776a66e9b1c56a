// How kernels over arrays are cut into threads: loops over any number of elements, four at a time where the addresses
// allow it, and loops over lines (rows, image lines) of items. Device code; included by .cu files.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/device.h"

namespace lockstep {

inline constexpr int kThreadsOfBlock = 256;
/// Enough to fill any device several times; what is left is reached by going round again.
inline constexpr int64_t kMostBlocks = 8192;

/// Blocks for `items` threads that go round if there are more.
inline unsigned blocks_for(int64_t items) {
    return static_cast<unsigned>(std::clamp<int64_t>((items + kThreadsOfBlock - 1) / kThreadsOfBlock, 1, kMostBlocks));
}

/// Whether float4 loads are possible at every one of these addresses.
template <class... Pointers>
bool all_aligned(Pointers... pointers) {
    return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

/// kWidth neighbouring floats in registers.
template <int kWidth>
struct Pack {
    float v[kWidth];
};

template <int kWidth>
__device__ inline Pack<kWidth> load(const float* address) {
    if constexpr (kWidth == 4) {
        const float4 four = *reinterpret_cast<const float4*>(address);
        return {{four.x, four.y, four.z, four.w}};
    } else {
        return {{*address}};
    }
}

/// kWidth neighbouring floats of memory that the kernel does not write.
template <int kWidth>
__device__ __forceinline__ Pack<kWidth> load_constant(const float* address) {
    if constexpr (kWidth == 4) {
        const float4 four = __ldg(reinterpret_cast<const float4*>(address));
        return {{four.x, four.y, four.z, four.w}};
    } else {
        return {{__ldg(address)}};
    }
}

template <int kWidth>
__device__ inline void store(float* address, const Pack<kWidth>& pack) {
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(address) = make_float4(pack.v[0], pack.v[1], pack.v[2], pack.v[3]);
    } else {
        *address = pack.v[0];
    }
}

/// A width as a type, so that a body can be written once for packs and for the elements left over.
template <int kWidth>
struct Width {
    static constexpr int value = kWidth;
};

/// body(Width<w>, first element) for all packs of kWidth elements of n, and singly for the n % kWidth last ones.
template <int kWidth, class Body>
__device__ inline void for_each_pack(int64_t n, Body body) {
    const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const int64_t threads = int64_t{gridDim.x} * blockDim.x;
    const int64_t packs = n / kWidth;
    for (int64_t i = thread; i < packs; i += threads) body(Width<kWidth>{}, i * kWidth);
    if constexpr (kWidth > 1) {
        for (int64_t i = packs * kWidth + thread; i < n; i += threads) body(Width<1>{}, i);
    }
}

/// Blocks of threads over lines of items: x runs along a line, y over lines. Short lines share a block.
struct LineGrid {
    dim3 grid, block;
    LineGrid(int64_t lines, int64_t items) {
        unsigned along = 1;
        while (along < kThreadsOfBlock && along < items) along *= 2;
        block = dim3(along, kThreadsOfBlock / along, 1);
        const auto count = [](int64_t all, unsigned each, int64_t most) {
            return static_cast<unsigned>(std::clamp<int64_t>((all + each - 1) / each, 1, most));
        };
        grid = dim3(count(items, block.x, 1024), count(lines, block.y, 65535), 1);
    }
};

/// body(line, item) for all items of all lines, in the grid of LineGrid.
template <class Body>
__device__ inline void for_each_item(int64_t lines, int64_t items, Body body) {
    for (int64_t line = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; line < lines;
         line += int64_t{gridDim.y} * blockDim.y) {
        for (int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; item < items;
             item += int64_t{gridDim.x} * blockDim.x) {
            body(line, item);
        }
    }
}

}  // namespace lockstep
