#include "io/tensor_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace lockstep {
namespace {

constexpr std::array<TensorType, 20> kTypes{{
    {"BOOL", 8, "|b1"}, {"U8", 8, "|u1"},   {"I8", 8, "|i1"},   {"F8_E5M2", 8, ""}, {"F8_E4M3", 8, ""},
    {"F8_E8M0", 8, ""}, {"F4", 4, ""},      {"F6_E2M3", 6, ""}, {"F6_E3M2", 6, ""}, {"I16", 16, "<i2"},
    {"U16", 16, "<u2"}, {"F16", 16, "<f2"}, {"BF16", 16, ""},   {"I32", 32, "<i4"}, {"U32", 32, "<u4"},
    {"F32", 32, "<f4"}, {"F64", 64, "<f8"}, {"I64", 64, "<i8"}, {"U64", 64, "<u8"}, {"C64", 64, "<c8"},
}};

}  // namespace

const TensorType* find_tensor_type(std::string_view name) {
    const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TensorType& t) { return t.name == name; });
    return found == kTypes.end() ? nullptr : found;
}

std::optional<uint64_t> tensor_bytes(const TensorType& type, std::span<const int64_t> shape) {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    uint64_t bits = static_cast<uint64_t>(type.bits);
    for (const int64_t extent : shape) {
        uint64_t product = 0;
        if (extent < 0 || __builtin_mul_overflow(bits, static_cast<uint64_t>(extent), &product)) return {};
        bits = product;
    }
    if (bits % 8 != 0 || bits / 8 > kMost) return {};
    return bits / 8;
}

std::string shape_text(std::span<const int64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace lockstep
