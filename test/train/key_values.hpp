// What each key of the config table is tried at: a new key needs a line in one of the two tables.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/value.hpp"
#include "io/temp_folder.hpp"

namespace lockstep::test {

using Change = std::function<void(Config&)>;

/// The values that a key which changes no bit is tried at.
std::map<std::string, std::vector<Value>> harmless_values(const TempFolder& folder);

/// A key that changes bits: what makes the job use it, and another value.
struct Harmful {
    Change use;
    Value value;
};
std::map<std::string, Harmful> harmful_values();

}  // namespace lockstep::test
