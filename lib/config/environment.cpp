// The one place that reads the environment.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "config/config.hpp"
#include "config/environment.hpp"

namespace lockstep {

std::vector<std::pair<std::string, std::string>> config_environment() {
    std::vector<std::pair<std::string, std::string>> variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const size_t equals = text.find('=');
        if (equals == std::string_view::npos || !text.starts_with("LOCKSTEP_") || text.starts_with("LOCKSTEP_DEBUG_"))
            continue;
        variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    std::sort(variables.begin(), variables.end());  // faults in an order that does not hang on the shell's
    return variables;
}

Environment environment_with(std::span<const std::string_view> prefixes) {
    Environment variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const size_t equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        const auto begins = [&](std::string_view prefix) { return text.substr(0, equals).starts_with(prefix); };
        if (std::any_of(prefixes.begin(), prefixes.end(), begins)) {
            variables.emplace(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    return variables;
}

std::optional<std::string> environment_variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace lockstep
