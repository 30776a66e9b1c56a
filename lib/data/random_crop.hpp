// A random part of a picture, of a random area and aspect: the crop with which networks are trained on photographs
// (Szegedy et al., Going deeper with convolutions, 2014). What is drawn is a function of the numbers that the crop was
// made with; the region depends on the picture's size besides.
#pragma once

#include <cstdint>

#include "core/philox.hpp"
#include "io/resize.hpp"

namespace lockstep {

class RandomCrop {
  public:
    struct Spec {
        double least_area = 0.08, most_area = 1.0;          // shares of the picture's
        double least_ratio = 0.75, most_ratio = 4.0 / 3.0;  // width / height
    };
    RandomCrop(const Spec& spec, const RandomStream& random, uint64_t position)
        : spec_(spec), random_(random), position_(position) {}

    /// Ten times an area, uniform, and a ratio, uniform in its logarithm, are drawn; the first whose width and height,
    /// rounded to whole pixels, fit into the picture is placed anywhere in it. If none fits: the middle of the picture,
    /// as large as the ratios allow.
    PictureRegion region(int height, int width) const;

  private:
    Spec spec_;
    RandomStream random_;
    uint64_t position_;
};

}  // namespace lockstep
