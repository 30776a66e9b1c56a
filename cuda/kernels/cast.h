// Between Lockstep's fp32 tensors and what the vendor's libraries take: other number formats, images with a border of
// zeros, and filters with channels fastest. Rounding is to nearest even; what is beyond the largest fp16 becomes
// infinity, which the check for finite gradients then sees.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace lockstep {

/// Of the operands of a product; sums are fp32.
enum class NumberFormat { kFp32, kBf16, kFp16 };

inline std::size_t bytes_of(NumberFormat format) {
    return format == NumberFormat::kFp32 ? 4 : 2;
}

/// to[i] = from[i], rounded.
void narrow(NumberFormat format, int64_t n, const float* from, void* to, cudaStream_t stream);
/// to[i] = from[i], exactly.
void widen(NumberFormat format, int64_t n, const void* from, float* to, cudaStream_t stream);

/// Images [height][width][channels] inside a border of zeros.
struct BorderShape {
    int height = 0, width = 0, channels = 0;
    int top = 0, bottom = 0, left = 0, right = 0;
    int64_t inner_elements() const { return int64_t{height} * width * channels; }
    int64_t outer_elements() const { return int64_t{height + top + bottom} * (width + left + right) * channels; }
};

/// `to` [rows][outer]: `from` [rows][inner] with its border, rounded.
void add_border(NumberFormat format, int rows, const BorderShape& shape, const float* from, void* to,
                cudaStream_t stream);
/// `to` [rows][inner]: `from` [rows][outer] without its border.
void remove_border(NumberFormat format, int rows, const BorderShape& shape, const void* from, float* to,
                   cudaStream_t stream);

/// Filters [out][channels][taps] (PyTorch's) as [out][taps][channels], rounded; and back, exactly.
void pack_filters(NumberFormat format, int out, int channels, int taps, const float* from, void* to,
                  cudaStream_t stream);
void unpack_filters(int out, int channels, int taps, const float* from, float* to, cudaStream_t stream);

}  // namespace lockstep
