// The windows of a pooling layer, as the reference and the kernels of host and GPU walk them: pure functions of the
// shape.
#pragma once

#include "backend/backend.hpp"
#include "core/host_device.hpp"

namespace lockstep {

/// One axis: input size, kernel, stride, padding before it, output size.
struct PoolAxis {
    int in, kernel, stride, pad, out;

    /// Taps [first_tap, end_tap) of window `o` lie inside the input.
    LOCKSTEP_HOST_DEVICE int first_tap(int o) const {
        const int first = pad - o * stride;
        return first > 0 ? first : 0;
    }
    LOCKSTEP_HOST_DEVICE int end_tap(int o) const {
        const int end = in + pad - o * stride;
        return end < kernel ? end : kernel;
    }
    /// Windows [first_window, end_window) hold input `i`, which is tap i + pad - o * stride of window o.
    LOCKSTEP_HOST_DEVICE int first_window(int i) const {
        return i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1;
    }
    LOCKSTEP_HOST_DEVICE int end_window(int i) const {
        const int end = (i + pad) / stride + 1;
        return end < out ? end : out;
    }
};
inline PoolAxis pool_rows(const PoolShape& s) {
    return {s.in.height, s.kernel_h, s.stride_h, s.pad_top, s.out_h()};
}
inline PoolAxis pool_columns(const PoolShape& s) {
    return {s.in.width, s.kernel_w, s.stride_w, s.pad_left, s.out_w()};
}

/// The winning tap is stored in a byte.
inline constexpr int kMaxPoolTaps = 255;

/// Throws kUsage for a shape without output, a window without a tap, or a max kernel whose taps a byte cannot number.
void check_pool_shape(const PoolShape& shape);

}  // namespace lockstep
