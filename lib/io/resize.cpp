// Output pixel x of m from n has its centre at (x + 1/2) n/m of the input, pixel i at i + 1/2. With s = max(n, m) the
// triangle's weight is 2s - |(2i + 1) m - (2x + 1) n|, where positive: a whole number. Divided by their sum and rounded
// to 2^14ths, the first of the largest weights takes what rounding left over.
#include "io/resize.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr int kBits = 14;

struct Taps {
    int first = 0;     // input pixel
    size_t begin = 0;  // of the weights
    size_t end = 0;
};

struct Axis {
    std::vector<Taps> taps;  // of each output pixel
    std::vector<uint32_t> weights;
};

Axis make_axis(int64_t n, int64_t m) {
    Axis axis;
    const int64_t s = std::max(n, m);
    std::vector<int64_t> raw;
    for (int64_t x = 0; x < m; ++x) {
        const int64_t centre = (2 * x + 1) * n;
        const auto weight = [&](int64_t i) { return 2 * s - std::abs((2 * i + 1) * m - centre); };
        int64_t first = std::clamp<int64_t>((centre / m - 1) / 2, 0, n - 1);
        while (first > 0 && weight(first - 1) > 0) --first;
        while (weight(first) <= 0) ++first;
        raw.clear();
        int64_t sum = 0;
        for (int64_t i = first; i < n && weight(i) > 0; ++i) {
            raw.push_back(weight(i));
            sum += raw.back();
        }
        const size_t begin = axis.weights.size();
        int64_t left = int64_t{1} << kBits;
        for (const int64_t w : raw) {
            const int64_t share = ((w << kBits) + sum / 2) / sum;
            axis.weights.push_back(static_cast<uint32_t>(share));
            left -= share;
        }
        const auto largest = static_cast<size_t>(std::max_element(raw.begin(), raw.end()) - raw.begin());
        axis.weights[begin + largest] = static_cast<uint32_t>(axis.weights[begin + largest] + left);
        axis.taps.push_back({static_cast<int>(first), begin, axis.weights.size()});
    }
    return axis;
}

template <int Channels>
void resize_row(const uint8_t* from, const Axis& axis, uint16_t* to) {
    for (const Taps& taps : axis.taps) {
        uint32_t sums[Channels] = {};
        const uint8_t* pixel = from + Channels * taps.first;
        for (size_t t = taps.begin; t < taps.end; ++t, pixel += Channels) {
            for (int c = 0; c < Channels; ++c) sums[c] += axis.weights[t] * pixel[c];
        }
        for (int c = 0; c < Channels; ++c) *to++ = static_cast<uint16_t>((sums[c] + (1U << 5)) >> 6);
    }
}

void check(const PictureRegion& region, int from_height, int from_width, int height, int width) {
    const bool inside = region.top >= 0 && region.left >= 0 && region.height >= 1 && region.width >= 1 &&
                        region.top + region.height <= from_height && region.left + region.width <= from_width;
    if (inside && height >= 1 && width >= 1) return;
    fail(ErrorKind::kRuntime, "region {}x{} at {}, {} of a picture of {}x{} cannot become {}x{}", region.height,
         region.width, region.top, region.left, from_height, from_width, height, width);
}

}  // namespace

Picture resized(const Picture& from, const PictureRegion& region, int height, int width) {
    check(region, from.height, from.width, height, width);
    if (from.channels != 1 && from.channels != 3) {
        fail(ErrorKind::kRuntime, "a picture of {} channels cannot be resized: 1 or 3 are expected", from.channels);
    }
    const Axis columns = make_axis(region.width, width);
    const Axis rows = make_axis(region.height, height);
    const auto channels = static_cast<size_t>(from.channels);
    const size_t row = static_cast<size_t>(width) * channels;
    std::vector<uint16_t> narrowed(row * static_cast<size_t>(region.height));
    for (int y = 0; y < region.height; ++y) {
        const size_t at =
            static_cast<size_t>(region.top + y) * static_cast<size_t>(from.width) + static_cast<size_t>(region.left);
        const uint8_t* source = from.pixels.data() + at * channels;
        uint16_t* target = narrowed.data() + static_cast<size_t>(y) * row;
        if (channels == 1) {
            resize_row<1>(source, columns, target);
        } else {
            resize_row<3>(source, columns, target);
        }
    }
    Picture to{height, width, from.channels, {}};
    to.pixels.resize(row * static_cast<size_t>(height));
    std::vector<uint32_t> sums(row);
    for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
        std::fill(sums.begin(), sums.end(), 1U << 21);
        const Taps& taps = rows.taps[y];
        for (size_t t = taps.begin; t < taps.end; ++t) {
            const uint32_t weight = rows.weights[t];
            const uint16_t* source = narrowed.data() + (static_cast<size_t>(taps.first) + t - taps.begin) * row;
            for (size_t i = 0; i < row; ++i) sums[i] += weight * source[i];
        }
        uint8_t* target = to.pixels.data() + y * row;
        for (size_t i = 0; i < row; ++i) target[i] = static_cast<uint8_t>(sums[i] >> 22);
    }
    return to;
}

void resize_values(std::span<const float> from, int from_height, int from_width, int channels,
                   const PictureRegion& region, int height, int width, std::span<float> to) {
    check(region, from_height, from_width, height, width);
    constexpr float kUnit = 1.0f / (1 << kBits);
    const Axis columns = make_axis(region.width, width);
    const Axis rows = make_axis(region.height, height);
    const auto depth = static_cast<size_t>(channels);
    const size_t row = static_cast<size_t>(width) * depth;
    std::vector<float> narrowed(row * static_cast<size_t>(region.height), 0.0f);
    for (int y = 0; y < region.height; ++y) {
        const size_t at =
            static_cast<size_t>(region.top + y) * static_cast<size_t>(from_width) + static_cast<size_t>(region.left);
        float* target = narrowed.data() + static_cast<size_t>(y) * row;
        for (const Taps& taps : columns.taps) {
            const float* source = from.data() + (at + static_cast<size_t>(taps.first)) * depth;
            for (size_t t = taps.begin; t < taps.end; ++t, source += depth) {
                const float weight = static_cast<float>(columns.weights[t]) * kUnit;
                for (size_t c = 0; c < depth; ++c) target[c] += weight * source[c];
            }
            target += depth;
        }
    }
    std::fill(to.begin(), to.end(), 0.0f);
    for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
        const Taps& taps = rows.taps[y];
        for (size_t t = taps.begin; t < taps.end; ++t) {
            const float weight = static_cast<float>(rows.weights[t]) * kUnit;
            const float* source = narrowed.data() + (static_cast<size_t>(taps.first) + t - taps.begin) * row;
            for (size_t i = 0; i < row; ++i) to[y * row + i] += weight * source[i];
        }
    }
}

}  // namespace lockstep
