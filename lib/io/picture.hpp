// Pictures as bytes: decoded from JPEG and PNG, always to the same bits. What a file is, its first bytes tell, never
// its name: data sets have PNGs named .JPEG. Damaged pictures are refused; an orientation that a camera noted is not
// followed, as other trainers do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct Picture {
    int height = 0;
    int width = 0;
    int channels = 0;             // 1: gray, 3: red, green, blue
    std::vector<uint8_t> pixels;  // [height][width][channels]
};

struct PictureSize {
    int height = 0;
    int width = 0;
    bool operator==(const PictureSize&) const = default;
};

/// Gray stays one channel; palettes and CMYK become red, green, blue; transparency is dropped, 16 bits are cut to 8.
/// kData, naming `name` and the offset at which it goes wrong.
Picture decode_picture(std::span<const std::byte> bytes, const std::string& name);

/// From the header alone. kData as above, and where `bytes` end before the size is known.
PictureSize picture_size(std::span<const std::byte> bytes, const std::string& name);

/// Gray to three equal channels, or colours to gray: (19595 R + 38470 G + 7471 B + 32768) / 65536, the weights of ITU-R
/// BT.601.
void set_channels(Picture& picture, int channels);

}  // namespace lockstep
