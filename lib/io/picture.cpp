#include "io/picture.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/jpeg.hpp"
#include "io/png.hpp"

namespace lockstep {
namespace {

[[noreturn]] void fail_unknown(std::span<const std::byte> bytes, const std::string& name) {
    if (bytes.empty()) fail(ErrorKind::kData, "{}: empty: a JPEG or PNG picture expected, 0 bytes found", name);
    std::vector<std::string> start;
    for (const std::byte b : bytes.first(std::min<size_t>(bytes.size(), 8))) {
        start.push_back(fmt::format("{:02x}", std::to_integer<int>(b)));
    }
    fail(ErrorKind::kData, "{}: neither JPEG (ff d8 ff) nor PNG (89 50 4e 47): it starts with {}", name,
         fmt::join(start, " "));
}

}  // namespace

Picture decode_picture(std::span<const std::byte> bytes, const std::string& name) {
    if (looks_like_jpeg(bytes)) return decode_jpeg(bytes, name);
    if (looks_like_png(bytes)) return decode_png(bytes, name);
    fail_unknown(bytes, name);
}

PictureSize picture_size(std::span<const std::byte> bytes, const std::string& name) {
    if (looks_like_jpeg(bytes)) return jpeg_size(bytes, name);
    if (looks_like_png(bytes)) return png_size(bytes, name);
    fail_unknown(bytes, name);
}

void set_channels(Picture& picture, int channels) {
    if (picture.channels == channels) return;
    const size_t count = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
    std::vector<uint8_t> pixels(count * static_cast<size_t>(channels));
    const uint8_t* from = picture.pixels.data();
    for (size_t i = 0; i < count; ++i) {
        if (channels == 3) {
            std::fill_n(pixels.data() + 3 * i, 3, from[i]);
        } else {
            const uint32_t sum = 19595U * from[3 * i] + 38470U * from[3 * i + 1] + 7471U * from[3 * i + 2] + 32768U;
            pixels[i] = static_cast<uint8_t>(sum >> 16);
        }
    }
    picture.pixels = std::move(pixels);
    picture.channels = channels;
}

}  // namespace lockstep
