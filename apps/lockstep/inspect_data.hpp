// What the files of data sets hold, for `lockstep inspect`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep {

/// Of a picture, a CIFAR file, a TFRecord file or a folder of pictures; nothing where `path` is none of these.
std::optional<nlohmann::ordered_json> describe_data(const std::string& path);

}  // namespace lockstep
