// Pictures made larger or smaller, in integers alone: the same bits on every machine.
#pragma once

#include "io/picture.hpp"

namespace lockstep {

/// A part of a picture, inside it.
struct PictureRegion {
    int top = 0;
    int left = 0;
    int height = 0;
    int width = 0;
    bool operator==(const PictureRegion&) const = default;
};

/// `region` of `from` as a picture of height x width: bilinear, and where it gets smaller averaged under a triangle
/// twice as wide as an output pixel (what torchvision and Pillow call bilinear with antialiasing). Pixel centres lie at
/// halves. Columns first, to 8.8 bits, then rows, rounded to a byte; weights are whole 2^14ths that add up to one.
Picture resized(const Picture& from, const PictureRegion& region, int height, int width);

/// The same weights on fp32 values [from_height][from_width][channels] of any kind: columns, then rows, each a sum in
/// ascending order of w * value, w a multiple of 2^-14.
void resize_values(std::span<const float> from, int from_height, int from_width, int channels,
                   const PictureRegion& region, int height, int width, std::span<float> to);

}  // namespace lockstep
