#include "backend/conv_shape.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep {

void check_conv_shape(const ConvShape& s) {
    if (s.in.elements() < 1 || s.out_channels < 1 || s.kernel_h < 1 || s.kernel_w < 1 || s.stride_h < 1 ||
        s.stride_w < 1 || s.dilation_h < 1 || s.dilation_w < 1 || s.groups < 1 ||
        std::min({s.pad_top, s.pad_bottom, s.pad_left, s.pad_right}) < 0) {
        fail(ErrorKind::kUsage,
             "convolution: channels, kernel, stride, dilation and groups must be at least 1, padding at least 0");
    }
    if (s.in.channels % s.groups != 0 || s.out_channels % s.groups != 0) {
        fail(ErrorKind::kUsage, "convolution: {} groups do not divide {} input and {} output channels", s.groups,
             s.in.channels, s.out_channels);
    }
    const int span_h = s.dilation_h * (s.kernel_h - 1) + 1, span_w = s.dilation_w * (s.kernel_w - 1) + 1;
    const int height = s.in.height + s.pad_top + s.pad_bottom, width = s.in.width + s.pad_left + s.pad_right;
    if (height < span_h || width < span_w) {
        fail(ErrorKind::kUsage,
             "convolution: a kernel that spans {} x {} does not fit an image of {} x {}, padding included", span_h,
             span_w, height, width);
    }
}

}  // namespace lockstep
