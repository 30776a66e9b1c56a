#include "data/augmentation.hpp"

#include <algorithm>
#include <cstring>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"

namespace lockstep {
namespace {

// Streams of Purpose::kAugmentation. Part of what a run computes: append, never renumber.
enum class Draw : uint64_t { kResizedCrop = 1, kPadCrop = 2, kFlip = 3, kColour = 4, kCutout = 5 };

RandomStream stream(uint64_t seed, Draw draw, int64_t epoch) {
    return {seed, Purpose::kAugmentation, static_cast<uint64_t>(draw), static_cast<uint32_t>(epoch)};
}

// 0 … count-1.
int one_of(int64_t count, uint32_t bits) {
    return static_cast<int>(uint64_t{bits} * static_cast<uint64_t>(count) >> 32);
}

// From max(0, 1 - range) to 1 + range: 2^24 values, exact in fp32.
float factor(float range, uint32_t bits) {
    const float least = std::max(0.0f, 1.0f - range);
    return least + (1.0f + range - least) * (static_cast<float>(bits >> 8) * 0x1p-24f);
}

float clamped(float value) {
    return std::min(1.0f, std::max(0.0f, value));
}

// Red, green, blue to gray: the weights of ITU-R BT.601, as torchvision's.
float gray_of(const float* p) {
    return 0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2];
}

}  // namespace

AugmentationSpec augmentation_spec(const Config& config) {
    const Config::Augment& from = config.augment;
    AugmentationSpec spec;
    spec.pad_crop = static_cast<int>(from.pad_crop);
    spec.flip = from.flip;
    spec.resized_crop = from.resized_crop;
    spec.crop = {from.scale.at(0), from.scale.at(1), from.ratio.at(0), from.ratio.at(1)};
    spec.brightness = static_cast<float>(from.brightness);
    spec.contrast = static_cast<float>(from.contrast);
    spec.saturation = static_cast<float>(from.saturation);
    spec.cutout = static_cast<int>(from.cutout);
    if (spec.any()) {
        const size_t channels = std::max(config.data.mean.size(), config.data.std.size());
        spec.scales = channel_scales(config.data, static_cast<int>(channels));
    }
    return spec;
}

Augmentation::Augmentation(const AugmentationSpec& spec, uint64_t seed, SampleShape shape)
    : spec_(spec), seed_(seed), shape_(shape) {
    if (spec.any() && shape.height == 1 && shape.width == 1) {
        fail(ErrorKind::kUsage, "[augment]: samples of one pixel, {} values, are no pictures; remove the section",
             shape.channels);
    }
    const auto channels = static_cast<size_t>(shape.channels);
    if (spec.scales.empty() || (spec.scales.size() != 1 && spec.scales.size() != channels)) {
        fail(ErrorKind::kUsage, "data.mean, data.std: {} values, but the data have {} channels", spec.scales.size(),
             shape.channels);
    }
    for (const ChannelScale& scale : spec.scales) blacks_.push_back(scale(0.0f));
}

int32_t Augmentation::read(const Dataset& data, int64_t index, int64_t epoch, int64_t position,
                           std::span<float> pixels) const {
    int32_t label = 0;
    if (spec_.resized_crop) {
        const RandomCrop crop(spec_.crop, stream(seed_, Draw::kResizedCrop, epoch), static_cast<uint64_t>(position));
        label = data.read_crop(index, crop, pixels);
    } else {
        label = data.read(index, pixels);
    }
    apply(epoch, position, pixels);
    return label;
}

void Augmentation::apply(int64_t epoch, int64_t position, std::span<float> pixels) const {
    const auto at = static_cast<uint64_t>(position);
    if (spec_.pad_crop > 0) {
        const PhiloxCounter bits = stream(seed_, Draw::kPadCrop, epoch).block(0, at);
        const int64_t places = 2 * int64_t{spec_.pad_crop} + 1;
        shift(one_of(places, bits[0]) - spec_.pad_crop, one_of(places, bits[1]) - spec_.pad_crop, pixels);
    }
    if (spec_.flip && stream(seed_, Draw::kFlip, epoch).bits(0, at) >> 31 != 0) mirror(pixels);
    if (spec_.brightness > 0 || spec_.contrast > 0 || spec_.saturation > 0) colour(epoch, at, pixels);
    if (spec_.cutout > 0) {
        const PhiloxCounter bits = stream(seed_, Draw::kCutout, epoch).block(0, at);
        cut_out(bits[0], bits[1], pixels);
    }
}

// In place, row by row, from the side where nothing is overwritten before it is moved. A window at (-down, -right) of
// the padded picture is the picture moved down and right.
void Augmentation::shift(int down, int right, std::span<float> pixels) const {
    const int height = shape_.height, width = shape_.width;
    const auto depth = static_cast<size_t>(shape_.channels);
    const size_t row = static_cast<size_t>(width) * depth;
    const auto blacken = [&](float* first, size_t count) {
        for (size_t i = 0; i < count; ++i) first[i] = black(i % depth);
    };
    for (int i = 0; i < height; ++i) {
        const int y = down > 0 ? height - 1 - i : i;
        float* to = pixels.data() + static_cast<size_t>(y) * row;
        const int from = y - down;
        const int kept = width - std::abs(right);
        if (from < 0 || from >= height || kept <= 0) {
            blacken(to, row);
            continue;
        }
        const float* source = pixels.data() + static_cast<size_t>(from) * row;
        const size_t moved = static_cast<size_t>(kept) * depth, free = row - moved;
        if (right >= 0) {
            std::memmove(to + free, source, moved * sizeof(float));
            blacken(to, free);
        } else {
            std::memmove(to, source + free, moved * sizeof(float));
            blacken(to + moved, free);
        }
    }
}

void Augmentation::mirror(std::span<float> pixels) const {
    const auto depth = static_cast<size_t>(shape_.channels), width = static_cast<size_t>(shape_.width);
    for (float* row = pixels.data(); row != pixels.data() + pixels.size(); row += width * depth) {
        for (size_t left = 0, right = width - 1; left < right; ++left, --right) {
            std::swap_ranges(row + left * depth, row + (left + 1) * depth, row + right * depth);
        }
    }
}

// On pixels as they were before normalisation, x = p · std + mean, from 0 to 1. As torchvision's ColorJitter, but
// always in this order; one channel has no saturation. The mean gray is an fp64 sum in pixel order, divided once.
void Augmentation::colour(int64_t epoch, uint64_t position, std::span<float> pixels) const {
    const PhiloxCounter bits = stream(seed_, Draw::kColour, epoch).block(0, position);
    const auto depth = static_cast<size_t>(shape_.channels);
    const auto scale = [&](size_t i) { return spec_.scales[spec_.scales.size() == 1 ? 0 : i % depth]; };
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = clamped(pixels[i] * scale(i).std + scale(i).mean);
    const auto gray_at = [&](size_t i) { return depth == 3 ? gray_of(pixels.data() + i) : pixels[i]; };
    if (spec_.brightness > 0) {
        const float by = factor(spec_.brightness, bits[0]);
        for (float& pixel : pixels) pixel = clamped(pixel * by);
    }
    if (spec_.contrast > 0) {
        const float by = factor(spec_.contrast, bits[1]);
        double sum = 0;
        for (size_t i = 0; i < pixels.size(); i += depth == 3 ? 3 : 1) sum += static_cast<double>(gray_at(i));
        const size_t grays = pixels.size() / (depth == 3 ? 3 : 1);
        const auto mean = static_cast<float>(sum / static_cast<double>(grays));
        for (float& pixel : pixels) pixel = clamped(mean + by * (pixel - mean));
    }
    if (spec_.saturation > 0 && depth == 3) {
        const float by = factor(spec_.saturation, bits[2]);
        for (size_t i = 0; i < pixels.size(); i += 3) {
            const float gray = gray_at(i);
            for (size_t c = 0; c < 3; ++c) pixels[i + c] = clamped(gray + by * (pixels[i + c] - gray));
        }
    }
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = scale(i)(pixels[i]);
}

// A square around any pixel, cut off at the borders (DeVries and Taylor, Improved regularization of convolutional
// neural networks with cutout, 2017); of even sides the pixel is the one right of and below the centre.
void Augmentation::cut_out(uint32_t row, uint32_t column, std::span<float> pixels) const {
    const int top = one_of(shape_.height, row) - spec_.cutout / 2;
    const int left = one_of(shape_.width, column) - spec_.cutout / 2;
    const int last_row = std::min(shape_.height, top + spec_.cutout);
    const int first_column = std::max(0, left), last_column = std::min(shape_.width, left + spec_.cutout);
    const auto depth = static_cast<size_t>(shape_.channels);
    for (int y = std::max(0, top); y < last_row; ++y) {
        const size_t line = static_cast<size_t>(y) * static_cast<size_t>(shape_.width);
        std::fill(pixels.data() + (line + static_cast<size_t>(first_column)) * depth,
                  pixels.data() + (line + static_cast<size_t>(last_column)) * depth, 0.0f);
    }
}

}  // namespace lockstep
