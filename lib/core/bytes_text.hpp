// Numbers of bytes in words, as messages and reports say them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace lockstep {

/// "62.8 GiB", "17 MiB", "512 bytes".
inline std::string bytes_text(int64_t bytes) {
    const auto scaled = [&](int shift, const char* unit) {
        const double value = static_cast<double>(bytes) / static_cast<double>(int64_t{1} << shift);
        return value < 10 && value != static_cast<double>(static_cast<int64_t>(value))
                   ? fmt::format("{:.1f} {}", value, unit)
                   : fmt::format("{:.0f} {}", value, unit);
    };
    if (bytes >= int64_t{1} << 30) return scaled(30, "GiB");
    if (bytes >= int64_t{1} << 20) return scaled(20, "MiB");
    if (bytes >= int64_t{1} << 10) return scaled(10, "KiB");
    return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

}  // namespace lockstep
