#include "config/read_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "config/nearest.hpp"
#include "config/read_value.hpp"

namespace lockstep {
namespace {

class Reader {
  public:
    Reader(const Key& key, const std::string& origin, const std::string& file)
        : key_(key), origin_(origin), file_(file) {}

    void read(const TomlArray& items) {
        for (size_t i = 0; i < items.size(); ++i) {
            const std::string name = fmt::format("{}[{}]", key_.name, i);
            const std::string place = at(items[i].line, items[i].column);
            if (const auto* table = std::get_if<TomlTable>(&items[i].data)) {
                read_table(name, place, *table);
            } else {
                add_fault(place, fmt::format("{} must be a table, got {}", name, describe(items[i])));
            }
        }
    }

    void add_fault(const std::string& place, const std::string& text) {
        result_.faults.push_back(place.empty() ? text : fmt::format("{}: {}", place, text));
    }

    ReadTables result() && { return std::move(result_); }

  private:
    std::string at(uint32_t line, uint32_t column) const {
        return file_.empty() || line == 0 ? origin_ : fmt::format("{}:{}:{}", file_, line, column);
    }

    void read_table(const std::string& name, const std::string& place, const TomlTable& table) {
        ConfigTable& out = result_.tables.emplace_back();
        out.origin = place;
        for (const TomlEntry& entry : table) read_entry(name, entry, out);
        // In the order of their rows: the same table, however it is written, is the same value (a checkpoint's text is
        // sorted by name).
        std::stable_sort(out.entries.begin(), out.entries.end(),
                         [&](const auto& left, const auto& right) { return row_of(left.first) < row_of(right.first); });
        for (const TableKey& row : key_.table) {
            const bool given =
                std::any_of(table.begin(), table.end(), [&](const auto& e) { return e.name == row.name; });
            if (row.required && !given)
                add_fault(place, fmt::format("{}: {} is missing ({})", name, row.name, row.doc));
        }
    }

    ptrdiff_t row_of(const std::string& name) const {
        const auto row = std::find_if(key_.table.begin(), key_.table.end(),
                                      [&](const TableKey& candidate) { return candidate.name == name; });
        return row - key_.table.begin();
    }

    void read_entry(const std::string& table_name, const TomlEntry& entry, ConfigTable& out) {
        const std::string place = at(entry.line, entry.column);
        const std::string name = fmt::format("{}.{}", table_name, one_line(entry.name));
        const auto row = std::find_if(key_.table.begin(), key_.table.end(),
                                      [&](const TableKey& candidate) { return candidate.name == entry.name; });
        if (row == key_.table.end()) {
            std::vector<std::string> names;
            for (const TableKey& known : key_.table) names.emplace_back(known.name);
            add_fault(place, fmt::format("{}: unknown key{}", name, did_you_mean(nearest(entry.name, names))));
            return;
        }
        const Key entry_key{.name = name,
                            .field = {.type = row->type, .optional = false, .get = nullptr, .set = nullptr},
                            .doc = row->doc,
                            .range = row->range,
                            .choices = row->choices,
                            .fp32 = true};
        ReadValue read = read_value(entry_key, as_list(row->type, entry.value));
        if (!read.fault.empty()) {
            add_fault(place, read.fault);
            return;
        }
        std::visit(
            [&](auto& value) {
                using T = std::decay_t<decltype(value)>;
                if constexpr (std::is_constructible_v<ConfigTable::Value, std::in_place_type_t<T>, T>)
                    out.entries.emplace_back(entry.name, std::move(value));
            },
            read.value);
    }

    static TomlValue as_list(KeyType type, const TomlValue& value) {
        const bool wants_list = type == KeyType::kIntegers || type == KeyType::kNumbers || type == KeyType::kStrings;
        const bool is_scalar = value.data.index() < 4;
        return wants_list && is_scalar ? TomlValue{TomlArray{value}} : value;
    }

    const Key& key_;
    const std::string& origin_;
    const std::string& file_;
    ReadTables result_;
};

}  // namespace

ReadTables read_tables(const Key& key, const TomlValue& value, const std::string& origin, const std::string& file) {
    Reader reader(key, origin, file);
    if (const auto* items = std::get_if<TomlArray>(&value.data)) {
        reader.read(*items);
    } else {
        reader.add_fault(origin, fmt::format("{} must be {}, got {}; write [[{}]] for each", key.name,
                                             type_text(KeyType::kTables), describe(value), key.name));
    }
    return std::move(reader).result();
}

}  // namespace lockstep
