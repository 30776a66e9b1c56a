#include "data/normalisation.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace lockstep {
namespace {

void check_count(const char* key, size_t values, int channels) {
    if (values == 1 || values == static_cast<size_t>(channels)) return;
    fail(ErrorKind::kUsage, "{}: {} values, but the data have {} channel{}; give one value, or one per channel", key,
         values, channels, channels == 1 ? "" : "s");
}

}  // namespace

std::vector<ChannelScale> channel_scales(const Config::Data& data, int channels) {
    check_count("data.mean", data.mean.size(), channels);
    check_count("data.std", data.std.size(), channels);
    std::vector<ChannelScale> scales(std::max(data.mean.size(), data.std.size()));
    for (size_t c = 0; c < scales.size(); ++c) {
        scales[c].mean = static_cast<float>(data.mean[data.mean.size() == 1 ? 0 : c]);
        scales[c].std = static_cast<float>(data.std[data.std.size() == 1 ? 0 : c]);
        if (!std::isfinite(scales[c].mean) || !std::isfinite(scales[c].std) || scales[c].std == 0.0f) {
            fail(ErrorKind::kUsage, "data.mean, data.std: {} and {} (channel {}) cannot scale a pixel in fp32",
                 scales[c].mean, scales[c].std, c);
        }
    }
    return scales;
}

}  // namespace lockstep
