#include "backend/pool_windows.hpp"

#include "core/error.hpp"

namespace lockstep {
namespace {

void check_axis(const PoolAxis& axis, int pad_after, const char* name) {
    if (axis.in < 1 || axis.kernel < 1 || axis.pad < 0 || pad_after < 0) {
        fail(ErrorKind::kUsage,
             "pooling: {} {} with kernel {}, padding {} and {}: sizes must be positive, padding at least 0", name,
             axis.in, axis.kernel, axis.pad, pad_after);
    }
    if (axis.in + axis.pad + pad_after < axis.kernel) {
        fail(ErrorKind::kUsage,
             "pooling: kernel {} does not fit into {} {} with padding {} and {}; use a smaller kernel", axis.kernel,
             name, axis.in, axis.pad, pad_after);
    }
    for (const int window : {0, axis.out - 1}) {
        if (axis.first_tap(window) >= axis.end_tap(window)) {
            fail(ErrorKind::kUsage,
                 "pooling: window {} of {} {} lies in the padding ({} and {}) alone; use less padding", window, name,
                 axis.in, axis.pad, pad_after);
        }
    }
}

}  // namespace

void check_pool_shape(const PoolShape& shape) {
    if (shape.stride_h < 1 || shape.stride_w < 1) {
        fail(ErrorKind::kUsage, "pooling: stride {} x {} must be positive", shape.stride_h, shape.stride_w);
    }
    check_axis(pool_rows(shape), shape.pad_bottom, "height");
    check_axis(pool_columns(shape), shape.pad_right, "width");
    if (shape.kind == PoolKind::kMax && shape.kernel_h * shape.kernel_w > kMaxPoolTaps) {
        fail(ErrorKind::kUsage, "max pooling: a kernel of {} x {} has more than {} taps; use a smaller kernel",
             shape.kernel_h, shape.kernel_w, kMaxPoolTaps);
    }
}

}  // namespace lockstep
