#include "io/torch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace lockstep {

bool is_torch_file(std::span<const std::byte> start) {
    const std::string_view text(reinterpret_cast<const char*>(start.data()), std::min(start.size(), kTorchStart));
    if (text.starts_with("PK\x03\x04")) return text.find("/data.pkl") != std::string_view::npos;
    // A pickle begins with its protocol. So may the length at the start of a safetensors file, whose upper half is 0.
    const bool pickle = text.size() >= 8 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
    return pickle && text.substr(4, 4) != std::string_view("\0\0\0\0", 4);
}

std::string torch_file_advice(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename().string();
    return fmt::format(
        "a pickle of torch.save, which Python alone can read; convert it there: import torch, safetensors.torch; "
        "safetensors.torch.save_file(torch.load(\"{}\", map_location=\"cpu\"), \"weights.safetensors\") (of a file "
        "that "
        "holds more than a state_dict, that part of it)",
        name);
}

}  // namespace lockstep
