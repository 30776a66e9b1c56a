#include "config/read_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/nearest.hpp"
#include "config/read_tables.hpp"

namespace lockstep {
namespace {

/// Reads one kind of value or throws the words for what it should be; caught in read_value.
struct Fault {
    std::string text;
};

[[noreturn]] void wrong_type(const std::string& name, KeyType type, const TomlValue& value) {
    throw Fault{fmt::format("{} must be {}, got {}", name, type_text(type), describe(value))};
}

std::string limit_text(double limit) {
    return std::abs(limit) < 1e15 && limit == std::floor(limit) ? fmt::format("{}", static_cast<int64_t>(limit))
                                                                : toml_text(limit);
}

bool is_too_low(const Range& range, double number) {
    return range.above ? number <= range.least : number < range.least;
}
bool is_too_high(const Range& range, double number) {
    return range.below ? number >= range.most : number > range.most;
}

void check_range(const std::string& name, const Range& range, double number, const TomlValue& value) {
    const bool too_low = is_too_low(range, number);
    if (!too_low && !is_too_high(range, number)) return;
    // Only the side that is broken: nobody who writes 0 needs to know the upper bound.
    const Range broken =
        too_low ? Range{.least = range.least, .above = range.above} : Range{.most = range.most, .below = range.below};
    throw Fault{fmt::format("{} must be {}, got {}", name, range_text(broken), describe(value))};
}

/// A number that is legal as it is written, and not as fp32 holds it: 1e39 is infinite there, 1e-50 is 0.
void check_fp32(const std::string& name, const Range& range, double number, const TomlValue& value) {
    if (std::abs(number) > std::numeric_limits<float>::max()) {
        throw Fault{fmt::format("{} must be finite in fp32 (at most {:.8g}), got {}", name,
                                std::numeric_limits<float>::max(), describe(value))};
    }
    const auto rounded = static_cast<double>(static_cast<float>(number));
    if (is_too_low(range, rounded) || is_too_high(range, rounded)) {
        throw Fault{fmt::format("{} must be {}, got {}, which is {} in fp32", name, range_text(range), describe(value),
                                limit_text(rounded))};
    }
}

int64_t read_integer(const Key& key, const std::string& name, const TomlValue& value) {
    const auto* integer = std::get_if<int64_t>(&value.data);
    if (integer == nullptr) wrong_type(name, KeyType::kInteger, value);
    check_range(name, key.range, static_cast<double>(*integer), value);
    return *integer;
}

double read_number(const Key& key, const std::string& name, const TomlValue& value) {
    double number = 0;
    if (const auto* integer = std::get_if<int64_t>(&value.data)) {
        number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&value.data)) {
        number = *real;
    } else {
        wrong_type(name, KeyType::kNumber, value);
    }
    if (!std::isfinite(number)) throw Fault{fmt::format("{} must be finite, got {}", name, describe(value))};
    check_range(name, key.range, number, value);
    if (key.fp32) check_fp32(name, key.range, number, value);
    return number;
}

std::string read_string(const Key& key, const TomlValue& value) {
    const std::string name(key.name);
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr) wrong_type(name, KeyType::kString, value);
    if (!is_utf8(*text)) throw Fault{fmt::format("{} must be UTF-8", name)};
    if (key.choices.empty()) return *text;
    std::vector<std::string> choices;
    for (const std::string_view choice : choices_of(key)) {
        if (choice == *text) return *text;
        choices.emplace_back(choice);
    }
    throw Fault{fmt::format("{}: unknown value {}; one of {}{}", name, describe(value), join(choices_of(key)),
                            did_you_mean(nearest(*text, choices)))};
}

template <class Item, class Read>
std::vector<Item> read_list(const Key& key, const TomlValue& value, Read read) {
    const auto* items = std::get_if<TomlArray>(&value.data);
    if (items == nullptr) wrong_type(std::string(key.name), key.field.type, value);
    std::vector<Item> list;
    for (size_t i = 0; i < items->size(); ++i)
        list.push_back(read(key, fmt::format("{}[{}]", key.name, i), (*items)[i]));
    // A row of an array of tables has no default.
    const bool unset = list.empty() && (key.field.get == nullptr || default_of(key) == Value(std::vector<Item>()));
    if (unset || (list.size() >= key.least_entries && list.size() <= key.most_entries)) return list;
    const bool exact = key.least_entries == key.most_entries;
    const std::string_view kind = key.field.type == KeyType::kStrings ? "string" : "number";
    throw Fault{fmt::format("{} must hold {}{} {}{}, got {}", key.name, exact ? "" : "at least ", key.least_entries,
                            kind, key.least_entries == 1 ? "" : "s", list.size())};
}

std::string read_text(const Key&, const std::string& name, const TomlValue& value) {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr) wrong_type(name, KeyType::kString, value);
    if (!is_utf8(*text)) throw Fault{fmt::format("{} must be UTF-8", name)};
    return *text;
}

/// The path or the list of paths; the table of images and labels is taken apart before (each is a setting of its own).
DataPaths read_paths(const Key& key, const TomlValue& value) {
    const auto take = [&](const TomlValue& item, std::vector<std::string>& paths) {
        const auto* path = std::get_if<std::string>(&item.data);
        if (path == nullptr) wrong_type(std::string(key.name), KeyType::kPaths, value);
        if (path->empty()) throw Fault{fmt::format("{} must not hold an empty path", key.name)};
        if (!is_utf8(*path)) throw Fault{fmt::format("{} must be UTF-8", key.name)};
        paths.push_back(*path);
    };
    DataPaths paths;
    if (const auto* items = std::get_if<TomlArray>(&value.data)) {
        for (const TomlValue& item : *items) take(item, paths.paths);
    } else {
        take(value, paths.paths);
    }
    return paths;
}

Value read(const Key& key, const TomlValue& value) {
    const std::string name(key.name);
    switch (key.field.type) {
        case KeyType::kBool:
            if (const auto* flag = std::get_if<bool>(&value.data)) return *flag;
            wrong_type(name, KeyType::kBool, value);
        case KeyType::kInteger:
            return read_integer(key, name, value);
        case KeyType::kNumber:
            return read_number(key, name, value);
        case KeyType::kString:
            return read_string(key, value);
        case KeyType::kIntegers:
            return read_list<int64_t>(key, value, read_integer);
        case KeyType::kNumbers:
            return read_list<double>(key, value, read_number);
        case KeyType::kPaths:
            return read_paths(key, value);
        case KeyType::kStrings:
            return read_list<std::string>(key, value, read_text);
        case KeyType::kTables: {
            ReadTables tables = read_tables(key, value, "", "");
            if (!tables.faults.empty()) throw Fault{tables.faults.front()};
            return std::move(tables.tables);
        }
    }
    return {};
}

}  // namespace

ReadValue read_value(const Key& key, const TomlValue& value) {
    try {
        return {read(key, value), ""};
    } catch (const Fault& fault) {
        return {{}, fault.text};
    }
}

std::string range_text(const Range& range) {
    std::string text;
    if (std::isfinite(range.least))
        text = fmt::format("{} {}", range.above ? "above" : "at least", limit_text(range.least));
    if (std::isfinite(range.most)) {
        text += fmt::format("{}{} {}", text.empty() ? "" : " and ", range.below ? "below" : "at most",
                            limit_text(range.most));
    }
    return text;
}

std::string type_text(KeyType type) {
    switch (type) {
        case KeyType::kBool:
            return "true or false";
        case KeyType::kInteger:
            return "a whole number";
        case KeyType::kNumber:
            return "a number";
        case KeyType::kString:
            return "a string";
        case KeyType::kIntegers:
            return "a list of whole numbers";
        case KeyType::kNumbers:
            return "a list of numbers";
        case KeyType::kPaths:
            return "{ images = \"…\", labels = \"…\" }, a path or a list of paths";
        case KeyType::kStrings:
            return "a list of strings";
        case KeyType::kTables:
            return "a list of tables";
    }
    return "";
}

std::string join(const std::vector<std::string_view>& parts) {
    std::vector<std::string_view> shown = parts;
    std::replace(shown.begin(), shown.end(), std::string_view(), std::string_view("\"\""));
    return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace lockstep
