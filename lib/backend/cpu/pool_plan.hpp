// The windows of a pooling layer, as both the reference and the kernels walk them: pure functions of the shape.
#pragma once

#include <algorithm>
#include <memory>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_context.hpp"

namespace lockstep {

/// One axis: input size, kernel, stride, padding before it, output size.
struct PoolAxis {
    int in, kernel, stride, pad, out;

    /// Taps [first_tap, end_tap) of window `o` lie inside the input.
    int first_tap(int o) const { return std::max(0, pad - o * stride); }
    int end_tap(int o) const { return std::min(kernel, in + pad - o * stride); }
    /// Windows [first_window, end_window) hold input `i`, which is tap i + pad - o * stride of window o.
    int first_window(int i) const { return i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1; }
    int end_window(int i) const { return std::min(out, (i + pad) / stride + 1); }
};
inline PoolAxis pool_rows(const PoolShape& s) {
    return {s.in.height, s.kernel_h, s.stride_h, s.pad_top, s.out_h()};
}
inline PoolAxis pool_columns(const PoolShape& s) {
    return {s.in.width, s.kernel_w, s.stride_w, s.pad_left, s.out_w()};
}

/// A larger average kernel sums in blocks of chains.
inline constexpr int kPlainAverageTaps = 64;
inline constexpr int kAverageBlock = 256;
/// The winning tap is stored in a byte.
inline constexpr int kMaxPoolTaps = 255;

/// Throws kUsage for a shape without output, a window without a tap, or a max kernel whose taps a byte cannot number.
void check_pool_shape(const PoolShape& shape);

/// The operation, checked. The context must outlive it.
std::unique_ptr<Pool> make_cpu_pool(CpuContext& context, const PoolShape& shape);

}  // namespace lockstep
