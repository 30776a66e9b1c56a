// PNG pictures of every kind, by libpng. Private to picture.cpp.
#pragma once

#include "io/picture.hpp"

namespace lockstep {

bool looks_like_png(std::span<const std::byte> bytes);
Picture decode_png(std::span<const std::byte> bytes, const std::string& name);
PictureSize png_size(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lockstep
