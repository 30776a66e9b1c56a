// Where a convolution or pooling looks: the size of its window, its steps, and how the borders are padded.
#pragma once

#include "core/shape.hpp"

namespace lockstep {

struct Window {
    enum class Border {
        kValid,    // no padding
        kSame,     // ceil(size / stride) places; an odd row or column of padding lies below and right, as in TensorFlow
        kGiven,    // top, bottom, left, right
        kCeiling,  // no padding but below and right, so that the last rows and columns count (PyTorch's ceil_mode)
    };
    int kernel_h = 1, kernel_w = 1;
    int stride_h = 1, stride_w = 1;
    Border border = Border::kValid;
    int top = 0, bottom = 0, left = 0, right = 0;  // kGiven; else what padded_for() finds
    int dilation_h = 1, dilation_w = 1;

    static Window valid(int kernel, int stride = 1) { return square(kernel, stride, Border::kValid); }
    static Window same(int kernel, int stride = 1) { return square(kernel, stride, Border::kSame); }
    static Window ceiling(int kernel, int stride) { return square(kernel, stride, Border::kCeiling); }
    static Window padded(int kernel, int stride, int padding) {
        Window window = square(kernel, stride, Border::kGiven);
        window.top = window.bottom = window.left = window.right = padding;
        return window;
    }

    /// The same window with the padding that maps of this shape need.
    Window padded_for(SampleShape shape) const {
        Window window = *this;
        if (border == Border::kGiven) return window;
        const int rows = padding(shape.height, dilation_h * (kernel_h - 1) + 1, stride_h);
        const int columns = padding(shape.width, dilation_w * (kernel_w - 1) + 1, stride_w);
        const bool behind = border == Border::kCeiling;
        window.top = behind ? 0 : rows / 2;
        window.left = behind ? 0 : columns / 2;
        window.bottom = rows - window.top;
        window.right = columns - window.left;
        return window;
    }

  private:
    static Window square(int kernel, int stride, Border border) {
        return {.kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride, .border = border};
    }

    /// Of both ends together, along one side of `size` places with windows of `extent`.
    int padding(int size, int extent, int stride) const {
        if (border == Border::kValid || (border == Border::kCeiling && size < extent)) return 0;
        const int places =
            border == Border::kSame ? (size + stride - 1) / stride : (size - extent + stride - 1) / stride + 1;
        const int missing = (places - 1) * stride + extent - size;
        return missing > 0 ? missing : 0;
    }
};

}  // namespace lockstep
