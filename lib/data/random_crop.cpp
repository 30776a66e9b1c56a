#include "data/random_crop.hpp"

#include <algorithm>
#include <cmath>

#include "core/fixed_math.hpp"

namespace lockstep {
namespace {

constexpr int kAttempts = 10;

// 2^32 values from least to most, both ends out.
double between(double least, double most, uint32_t bits) {
    return least + (most - least) * ((static_cast<double>(bits) + 0.5) / 4294967296.0);
}

// 0 … most, equally likely but for 2^-32.
int below_or_at(int most, uint32_t bits) {
    return static_cast<int>(uint64_t{bits} * (static_cast<uint64_t>(most) + 1) >> 32);
}

}  // namespace

PictureRegion RandomCrop::region(int height, int width) const {
    const double area = static_cast<double>(height) * static_cast<double>(width);
    const double least = log_fixed(spec_.least_ratio), most = log_fixed(spec_.most_ratio);
    for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
        const PhiloxCounter bits = random_.block(attempt, position_);
        const double part = area * between(spec_.least_area, spec_.most_area, bits[0]);
        const double ratio = exp_fixed(between(least, most, bits[1]));
        const double w = std::floor(std::sqrt(part * ratio) + 0.5), h = std::floor(std::sqrt(part / ratio) + 0.5);
        if (w < 1 || h < 1 || w > width || h > height) continue;
        PictureRegion region{0, 0, static_cast<int>(h), static_cast<int>(w)};
        region.top = below_or_at(height - region.height, bits[2]);
        region.left = below_or_at(width - region.width, bits[3]);
        return region;
    }
    PictureRegion region{0, 0, height, width};
    if (static_cast<double>(width) < spec_.least_ratio * height) {
        region.height = std::max(1, static_cast<int>(std::floor(width / spec_.least_ratio + 0.5)));
    } else if (static_cast<double>(width) > spec_.most_ratio * height) {
        region.width = std::max(1, static_cast<int>(std::floor(spec_.most_ratio * height + 0.5)));
    }
    region.height = std::min(region.height, height);
    region.width = std::min(region.width, width);
    region.top = (height - region.height) / 2;
    region.left = (width - region.width) / 2;
    return region;
}

}  // namespace lockstep
