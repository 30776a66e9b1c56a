// Convolutions to test: one with its arrays, the results of its passes, and convolutions at random.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "backend/cpu/reference_gemm.hpp"
#include "kernel_fixture.hpp"

namespace lockstep::test {

struct ConvCase {
    ConvShape shape;
    int rows = 1;
    bool relu = false;
    Floats x{0}, w{0}, b{0}, dy{0};

    void fill(Random& random) {
        x = Floats(random, rows * shape.in.elements());
        w = Floats(random, shape.weights(), 0.1F);
        b = Floats(random, shape.out_channels);
        dy = Floats(random, rows * shape.out().elements());
        for (int64_t i = 0; i < x.size(); ++i) x[i] = relu_of(x[i]);  // zeros, as a layer below makes them
        for (int64_t i = 0; i < dy.size(); i += 3) dy[i] = 0;
    }
    int64_t terms() const { return rows * shape.out().elements() * (shape.weights() / shape.out_channels); }
    std::string text() const {
        const ConvShape& s = shape;
        return fmt::format(
            "{} rows of {}x{}x{} -> {} channels, kernel {}x{}, stride {}x{}, dilation {}x{}, padding {} {} {} {}, {} "
            "groups{}{}",
            rows, s.in.height, s.in.width, s.in.channels, s.out_channels, s.kernel_h, s.kernel_w, s.stride_h,
            s.stride_w, s.dilation_h, s.dilation_w, s.pad_top, s.pad_bottom, s.pad_left, s.pad_right, s.groups,
            relu ? ", relu" : "", s.bias ? "" : ", no bias");
    }
};

struct ConvResult {
    Floats y, dx, dw, db;
    explicit ConvResult(const ConvCase& c)
        : ConvResult(Floats(c.rows * c.shape.out().elements(), -3.0F), Floats(c.rows * c.shape.in.elements(), -3.0F),
                     Floats(c.shape.weights(), -3.0F), Floats(c.shape.out_channels, -3.0F)) {}
    ConvResult(Floats output, Floats input_gradient, Floats weight_gradient, Floats bias_gradient)
        : y(std::move(output)),
          dx(std::move(input_gradient)),
          dw(std::move(weight_gradient)),
          db(std::move(bias_gradient)) {}
};

inline bool fits(const ConvShape& s) {
    return s.in.height + s.pad_top + s.pad_bottom > s.dilation_h * (s.kernel_h - 1) &&
           s.in.width + s.pad_left + s.pad_right > s.dilation_w * (s.kernel_w - 1);
}

/// A random convolution of at most `terms` products in each of its three passes.
inline ConvCase random_conv(Random& random, int64_t terms) {
    for (;;) {
        ConvCase c;
        ConvShape& s = c.shape;
        c.rows = random.in(1, random.in(0, 2) == 0 ? 20 : 4);
        c.relu = random.in(0, 1) == 0;
        s.bias = random.in(0, 4) != 0;
        s.in = {random.in(1, 20), random.in(1, 20), 1};
        s.kernel_h = random.in(1, 7);
        s.kernel_w = random.in(0, 2) == 0 ? random.in(1, 7) : s.kernel_h;
        s.stride_h = random.in(0, 1) == 0 ? 1 : random.in(1, 3);
        s.stride_w = random.in(0, 2) == 0 ? random.in(1, 3) : s.stride_h;
        s.dilation_h = random.in(0, 3) == 0 ? random.in(1, 3) : 1;
        s.dilation_w = random.in(0, 3) == 0 ? random.in(1, 3) : s.dilation_h;
        switch (random.in(0, 3)) {
            case 0:
                break;
            case 1:  // "same"
                s.pad_top = s.pad_bottom = s.dilation_h * (s.kernel_h - 1) / 2;
                s.pad_left = s.pad_right = s.dilation_w * (s.kernel_w - 1) / 2;
                break;
            default:
                s.pad_top = random.in(0, 4);
                s.pad_bottom = random.in(0, 4);
                s.pad_left = random.in(0, 4);
                s.pad_right = random.in(0, 8);
        }
        switch (random.in(0, 5)) {
            case 0:  // pictures
                s.in.channels = random.in(1, 7);
                s.out_channels = random.in(1, 40);
                break;
            case 1:  // depthwise
                s.groups = s.in.channels = s.out_channels = random.in(2, 90);
                break;
            case 2:  // groups
                s.groups = random.in(2, 5);
                s.in.channels = s.groups * random.in(1, 12);
                s.out_channels = s.groups * random.in(1, 20);
                break;
            case 3:
                s.in.channels = 8 * random.in(1, 8);
                s.out_channels = 16 * random.in(1, 5);
                break;
            default:
                s.in.channels = random.in(8, 70);
                s.out_channels = random.in(1, 70);
        }
        if (fits(s) && c.terms() <= terms) return c;
    }
}

inline ConvShape lenet_second() {
    ConvShape s;
    s.in = {14, 14, 32};
    s.out_channels = 64;
    s.kernel_h = s.kernel_w = 5;
    s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = 2;
    return s;
}

}  // namespace lockstep::test
