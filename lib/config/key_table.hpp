// The one table of all config keys: name, type, range, default, unit, what it does, whether it can change a bit. To
// add a key: a field in config.hpp and a row here.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"

namespace lockstep {

/// How far a key reaches: decides what may differ between ranks and on resume.
enum class KeyEffect {
    kBits,     // can change a bit of a weight: must be equal on all ranks and on resume
    kPath,     // data.train, data.test, model.weights: never compared, their fingerprint is
    kShared,   // no bit, rank 0's value holds for all ([log], [check], [checkpoint], [eval], reduce.bucket_kib …)
    kPerRank,  // no bit, each rank follows its own ([device] but arithmetic and precision, log.dir, batch.micro)
};

/// One difference between two configs.
struct KeyDifference {
    std::string key;   // "batch.size"
    std::string left;  // TOML text of both values
    std::string right;
    KeyEffect effect;
};

/// All keys whose values differ, in table order. Callers filter by effect. With reduce.algorithm = "native" in either,
/// reduce.bucket_kib and small_kib count as kBits; so do those of [eval] where a plateau, early stopping or the best
/// checkpoint goes by evaluations, in either.
std::vector<KeyDifference> config_differences(const Config& left, const Config& right);

/// Reads what config_to_json wrote.
Config config_from_json(const std::string& text);

/// JSON Schema (draft 2020-12) of the config file; the commented starter file; the reference page (Markdown).
std::string config_schema();
std::string config_starter();
std::string config_reference();

}  // namespace lockstep
