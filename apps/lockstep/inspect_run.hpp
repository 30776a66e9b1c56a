// What inspect tells of what a training leaves behind: run directories, checkpoints and files of tensors, whole or
// damaged.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

nlohmann::ordered_json describe_safetensors(const std::string& path);

/// Every file of it is read and held against the sums that were stored with it.
nlohmann::ordered_json describe_checkpoint(const std::string& path);

/// Of a file that names a checkpoint beside it: `latest` or `best`.
nlohmann::ordered_json describe_named_checkpoint(const std::string& path);

/// What is there of a run, and under "damaged" a line for each part that is not as it was written, and so could not be
/// used as it is: the configuration, lines of metrics.jsonl, the final weights, every checkpoint that is kept, and what
/// `latest` and `best` name. That a run is not finished, or has no checkpoint yet, is no damage.
nlohmann::ordered_json describe_run(const std::string& path);

}  // namespace lockstep
