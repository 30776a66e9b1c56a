// The element types that tensor files know, and how many bytes a tensor of a type and shape has. Private to lib/io.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

struct TensorType {
    std::string_view name;   // as safetensors spells it: "F32"
    int bits;                // of one element; below 8 they are packed
    std::string_view numpy;  // NumPy's spelling, little-endian: "<f4"; empty where it has no such type
};

const TensorType* find_tensor_type(std::string_view name);  // nullptr for an unknown one

/// Nothing for a negative extent, for more than 2^63 - 1 bytes, and where packed elements do not fill whole bytes.
std::optional<uint64_t> tensor_bytes(const TensorType& type, std::span<const int64_t> shape);

/// "[3,4]", as in the header of a safetensors file.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace lockstep
