// One table of an array of tables, such as [[model.layers]] or [[data.columns]]: named values and where they stand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep {

struct ConfigTable {
    using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;
    std::vector<std::pair<std::string, Value>> entries;  // in the order of the file
    std::string origin;                                  // "exp.toml:12:1"; not part of the config's value

    const Value* find(std::string_view name) const {
        for (const auto& [key, value] : entries) {
            if (key == name) return &value;
        }
        return nullptr;
    }
    bool operator==(const ConfigTable& other) const { return entries == other.entries; }
};

}  // namespace lockstep
