// JPEG pictures, by libjpeg-turbo: baseline, progressive and arithmetic-coded; gray, colour and CMYK. Decoded with the
// integer ("islow") transform and smooth chroma, whose bits depend on no instruction set. Private to picture.cpp.
#pragma once

#include "io/picture.hpp"

namespace lockstep {

bool looks_like_jpeg(std::span<const std::byte> bytes);
Picture decode_jpeg(std::span<const std::byte> bytes, const std::string& name);
PictureSize jpeg_size(std::span<const std::byte> bytes, const std::string& name);

/// "libjpeg-turbo 2.1.5": another release may decode to other bits, so data made of JPEGs name it in their fingerprint.
std::string jpeg_decoder();

}  // namespace lockstep
