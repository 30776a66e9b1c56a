// What the files of data sets hold, for `lockstep inspect`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep {

/// Of a file of data, by its first bytes or, of a table, its name (kData where neither tells); of a folder of pictures,
/// where `path` is one, else nothing.
std::optional<nlohmann::ordered_json> describe_data(const std::string& path);

}  // namespace lockstep
