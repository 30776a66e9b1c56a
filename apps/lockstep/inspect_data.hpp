// What the files of data sets hold, for `lockstep inspect`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep {

/// Of a file of data, by its first bytes or, of a table, its name (kData where neither tells); of a folder of pictures,
/// TFRecords or CIFAR's files, where `path` is one, else nothing. `deep`: every sample is read, and "damaged" lists
/// what is wrong with those that cannot be.
std::optional<nlohmann::ordered_json> describe_data(const std::string& path, bool deep = false);

}  // namespace lockstep
