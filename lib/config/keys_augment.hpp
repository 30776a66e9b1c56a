// The rows of [augment]: how training samples are varied. Part of the key table: included by key_table.cpp alone.
#pragma once

#include "config/key.hpp"
#include "config/key_ranges.hpp"

namespace lockstep {

inline constexpr Range kPixels{.least = 0, .most = 32768};

inline constexpr Key kAugmentKeys[] = {
    {.name = "augment.pad_crop",
     .field = field<&Config::augment, &Config::Augment::pad_crop>(),
     .doc = "border of zeros on each side, of which a window of the old size is cut at random",
     .unit = "pixels",
     .range = kPixels},
    {.name = "augment.flip",
     .field = field<&Config::augment, &Config::Augment::flip>(),
     .doc = "left and right are swapped in half of the samples"},
    {.name = "augment.resized_crop",
     .field = field<&Config::augment, &Config::Augment::resized_crop>(),
     .doc = "a random part of the picture, of an area and an aspect drawn from scale and ratio, is resized to the "
            "sample"},
    {.name = "augment.scale",
     .field = field<&Config::augment, &Config::Augment::scale>(),
     .doc = "resized_crop: least and largest share of the area",
     .range = {.least = 0, .most = 1, .above = true},
     .least_entries = 2,
     .most_entries = 2,
     .fp32 = true},
    {.name = "augment.ratio",
     .field = field<&Config::augment, &Config::Augment::ratio>(),
     .doc = "resized_crop: least and largest width / height",
     .range = {.least = 0, .most = 1024, .above = true},
     .least_entries = 2,
     .most_entries = 2,
     .fp32 = true},
    {.name = "augment.brightness",
     .field = field<&Config::augment, &Config::Augment::brightness>(),
     .doc = "pixels are multiplied by a factor from 1 - this to 1 + this",
     .range = {.least = 0, .most = 16},
     .fp32 = true},
    {.name = "augment.contrast",
     .field = field<&Config::augment, &Config::Augment::contrast>(),
     .doc = "the same for the distance of pixels from the picture's mean gray",
     .range = {.least = 0, .most = 16},
     .fp32 = true},
    {.name = "augment.saturation",
     .field = field<&Config::augment, &Config::Augment::saturation>(),
     .doc = "the same for the distance of colours from gray",
     .range = {.least = 0, .most = 16},
     .fp32 = true},
    {.name = "augment.cutout",
     .field = field<&Config::augment, &Config::Augment::cutout>(),
     .doc = "side of a square around a random pixel that is set to 0 after normalisation",
     .unit = "pixels",
     .range = kPixels},
};

}  // namespace lockstep
