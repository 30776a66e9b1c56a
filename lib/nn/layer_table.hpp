// One table of [[model.layers]] as a model reads it: typed values by name, and faults with the table's place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_table.hpp"
#include "core/error.hpp"
#include "nn/window.hpp"

namespace lockstep {

class LayerTable {
  public:
    LayerTable(const ConfigTable& table, std::size_t index)
        : table_(table),
          place_(table.origin.empty() ? fmt::format("model.layers[{}]", index) : table.origin),
          kind_(text("kind").value_or("")) {}

    const std::string& kind() const { return kind_; }
    const std::string& place() const { return place_; }
    const ConfigTable& table() const { return table_; }
    bool has(std::string_view key) const { return table_.find(key) != nullptr; }

    template <class T>
    std::optional<T> get(std::string_view key) const {
        const ConfigTable::Value* value = table_.find(key);
        if (value == nullptr) return std::nullopt;
        if (const T* typed = std::get_if<T>(value)) return *typed;
        refuse(fmt::format("{} is of a wrong type", key));
    }
    std::optional<std::string> text(std::string_view key) const { return get<std::string>(key); }
    bool flag(std::string_view key, bool otherwise) const { return get<bool>(key).value_or(otherwise); }
    double number(std::string_view key, double otherwise) const { return get<double>(key).value_or(otherwise); }
    int integer(std::string_view key, int otherwise) const {
        return static_cast<int>(get<int64_t>(key).value_or(otherwise));
    }
    void need(std::string_view key) const {
        if (!has(key)) refuse(fmt::format("a {} needs {}", kind_, key));
    }
    int required(std::string_view key) const {
        need(key);
        return integer(key, 0);
    }
    std::vector<std::string> strings(std::string_view key) const {
        return get<std::vector<std::string>>(key).value_or(std::vector<std::string>());
    }
    std::optional<std::vector<int64_t>> integers(std::string_view key) const { return get<std::vector<int64_t>>(key); }

    /// kernel, stride, padding or pad, and dilation.
    Window window(Window::Border border, bool steps_of_kernel) const;
    /// Faults for keys that the kind does not have.
    void check_keys(std::string_view legal) const;

    [[noreturn]] void refuse(const std::string& why) const { fail(ErrorKind::kUsage, "{}: {}", place_, why); }

  private:
    /// [height, width] or one number for both.
    std::pair<int, int> pair(std::string_view key, std::pair<int, int> otherwise) const;

    const ConfigTable& table_;
    std::string place_, kind_;
};

}  // namespace lockstep
