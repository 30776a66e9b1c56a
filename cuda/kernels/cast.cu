// A thread an element, in grid-stride loops; the casts of whole tensors take four at a time. No sum, so no order.
#include "cuda/kernels/cast.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cuda/device.h"
#include "cuda/kernels/cast_convert.h"
#include "cuda/kernels/counts.h"

namespace lockstep {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocks = 4096;  // each thread then takes several elements

struct alignas(8) FourHalves {
    uint16_t bits[4];
};

__device__ inline uint16_t bits_of(__nv_bfloat16 x) {
    return __bfloat16_as_ushort(x);
}
__device__ inline uint16_t bits_of(__half x) {
    return __half_as_ushort(x);
}

__device__ inline int64_t first_index() {
    return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t index_step() {
    return int64_t{gridDim.x} * blockDim.x;
}

// Four elements at a time where both sides allow it (`vectors` of them), then what is left.
template <class T>
__global__ void k_narrow(int64_t n, int64_t vectors, const float* __restrict__ from, T* __restrict__ to) {
    for (int64_t i = first_index(); i < vectors; i += index_step()) {
        const float4 x = reinterpret_cast<const float4*>(from)[i];
        const T* const as = nullptr;
        const FourHalves y{{bits_of(convert(x.x, as)), bits_of(convert(x.y, as)), bits_of(convert(x.z, as)),
                            bits_of(convert(x.w, as))}};
        reinterpret_cast<FourHalves*>(to)[i] = y;
    }
    for (int64_t i = 4 * vectors + first_index(); i < n; i += index_step()) to[i] = convert(from[i], to);
}

template <class T>
__global__ void k_widen(int64_t n, const T* __restrict__ from, float* __restrict__ to) {
    for (int64_t i = first_index(); i < n; i += index_step()) to[i] = to_float(from[i]);
}

// One thread an element of the bordered image.
template <class T>
__global__ void k_add_border(int64_t n, BorderShape s, const float* __restrict__ from, T* __restrict__ to) {
    const int outer_width = s.width + s.left + s.right, outer_height = s.height + s.top + s.bottom;
    for (int64_t i = first_index(); i < n; i += index_step()) {
        const int c = static_cast<int>(i % s.channels);
        const int64_t pixel = i / s.channels;
        const int w = static_cast<int>(pixel % outer_width) - s.left;
        const int64_t line = pixel / outer_width;
        const int h = static_cast<int>(line % outer_height) - s.top;
        const bool inside = h >= 0 && h < s.height && w >= 0 && w < s.width;
        const int64_t image = line / outer_height;
        to[i] = convert(inside ? from[((image * s.height + h) * s.width + w) * s.channels + c] : 0.0F, to);
    }
}

// One thread an element of the image without border.
template <class T>
__global__ void k_remove_border(int64_t n, BorderShape s, const T* __restrict__ from, float* __restrict__ to) {
    const int outer_width = s.width + s.left + s.right, outer_height = s.height + s.top + s.bottom;
    for (int64_t i = first_index(); i < n; i += index_step()) {
        const int c = static_cast<int>(i % s.channels);
        const int64_t pixel = i / s.channels;
        const int w = static_cast<int>(pixel % s.width) + s.left;
        const int64_t line = pixel / s.width;
        const int h = static_cast<int>(line % s.height) + s.top;
        const int64_t image = line / s.height;
        to[i] = to_float(from[((image * outer_height + h) * outer_width + w) * s.channels + c]);
    }
}

// Filters are small beside activations: a plain transposition, coalesced on the side that is written.
template <class T>
__global__ void k_pack_filters(int64_t n, int channels, int taps, const float* __restrict__ from, T* __restrict__ to) {
    for (int64_t i = first_index(); i < n; i += index_step()) {
        const int64_t c = i % channels, tap = i / channels % taps, out = i / channels / taps;
        to[i] = convert(from[(out * channels + c) * taps + tap], to);
    }
}

__global__ void k_unpack_filters(int64_t n, int channels, int taps, const float* __restrict__ from,
                                 float* __restrict__ to) {
    for (int64_t i = first_index(); i < n; i += index_step()) {
        const int64_t tap = i % taps, c = i / taps % channels, out = i / taps / channels;
        to[i] = from[(out * taps + tap) * channels + c];
    }
}

unsigned blocks_for(int64_t items) {
    return static_cast<unsigned>(std::clamp<int64_t>((items + kThreads - 1) / kThreads, 1, kMostBlocks));
}

// Calls body with a typed null pointer of the format.
template <class Body>
void with_format(NumberFormat format, Body body) {
    switch (format) {
        case NumberFormat::kFp32:
            return body(static_cast<float*>(nullptr));
        case NumberFormat::kBf16:
            return body(static_cast<__nv_bfloat16*>(nullptr));
        case NumberFormat::kFp16:
            return body(static_cast<__half*>(nullptr));
    }
}

bool is_multiple(const void* pointer, std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

template <class T>
void launch_narrow(int64_t n, const float* from, T* to, cudaStream_t stream) {
    const int64_t vectors = is_multiple(from, sizeof(float4)) && is_multiple(to, sizeof(FourHalves)) ? n / 4 : 0;
    launch(k_narrow<T>, blocks_for(vectors > 0 ? vectors : n), kThreads, 0, stream, n, vectors, in(from, count(n)),
           out(to, count(n)));
}

}  // namespace

void narrow(NumberFormat format, int64_t n, const float* from, void* to, cudaStream_t stream) {
    if (n == 0) return;
    switch (format) {
        case NumberFormat::kFp32:
            CUDA_CHECK(cudaMemcpyAsync(to, from, count(n) * sizeof(float), cudaMemcpyDeviceToDevice, stream));
            return;
        case NumberFormat::kBf16:
            return launch_narrow(n, from, static_cast<__nv_bfloat16*>(to), stream);
        case NumberFormat::kFp16:
            return launch_narrow(n, from, static_cast<__half*>(to), stream);
    }
}

void widen(NumberFormat format, int64_t n, const void* from, float* to, cudaStream_t stream) {
    if (n == 0) return;
    with_format(format, [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        launch(k_widen<T>, blocks_for(n), kThreads, 0, stream, n, in(static_cast<const T*>(from), count(n)),
               out(to, count(n)));
    });
}

void add_border(NumberFormat format, int rows, const BorderShape& shape, const float* from, void* to,
                cudaStream_t stream) {
    const int64_t n = rows * shape.outer_elements();
    with_format(format, [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        launch(k_add_border<T>, blocks_for(n), kThreads, 0, stream, n, shape,
               in(from, count(rows * shape.inner_elements())), out(static_cast<T*>(to), count(n)));
    });
}

void remove_border(NumberFormat format, int rows, const BorderShape& shape, const void* from, float* to,
                   cudaStream_t stream) {
    const int64_t n = rows * shape.inner_elements();
    with_format(format, [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        launch(k_remove_border<T>, blocks_for(n), kThreads, 0, stream, n, shape,
               in(static_cast<const T*>(from), count(rows * shape.outer_elements())), out(to, count(n)));
    });
}

void pack_filters(NumberFormat format, int out_channels, int channels, int taps, const float* from, void* to,
                  cudaStream_t stream) {
    const int64_t n = int64_t{out_channels} * channels * taps;
    with_format(format, [&](auto* as) {
        using T = std::remove_pointer_t<decltype(as)>;
        launch(k_pack_filters<T>, blocks_for(n), kThreads, 0, stream, n, channels, taps, in(from, count(n)),
               out(static_cast<T*>(to), count(n)));
    });
}

void unpack_filters(int out_channels, int channels, int taps, const float* from, float* to, cudaStream_t stream) {
    const int64_t n = int64_t{out_channels} * channels * taps;
    launch(k_unpack_filters, blocks_for(n), kThreads, 0, stream, n, channels, taps, in(from, count(n)),
           out(to, count(n)));
}

}  // namespace lockstep
