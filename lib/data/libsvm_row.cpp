#include "data/libsvm_row.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

constexpr int64_t kMostIndex = int64_t{1} << 30;

/// The next word of the line, and the line without it; empty at its end.
std::string_view take_word(std::string_view& line) {
    line = without_blanks(line);
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    return word;
}

LibsvmRow::Entry entry_of(std::string_view word, int64_t last, FunctionRef<std::string()> place) {
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, colon);
    if (name == "qid")
        fail(ErrorKind::kData, "{}: \"{}\": ranking data; lockstep learns labels alone", place(), shown(word));
    LibsvmRow::Entry entry;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), entry.index);
    const bool is_index = error == std::errc() && end == name.data() + name.size();
    if (colon == std::string_view::npos || !is_index || entry.index < 0 || entry.index > kMostIndex) {
        fail(ErrorKind::kData, "{}: \"{}\": index:value is expected, with a whole number from 0 to {} for the index",
             place(), shown(word), kMostIndex);
    }
    if (entry.index <= last) {
        fail(ErrorKind::kData, "{}: index {} follows index {}; indices must rise", place(), entry.index, last);
    }
    const std::optional<double> value = parse_number(word.substr(colon + 1));
    entry.value = static_cast<float>(value.value_or(0));
    if (!value || !std::isfinite(entry.value)) {
        fail(ErrorKind::kData, "{}: \"{}\": the value is no number that fp32 can hold", place(), shown(word));
    }
    return entry;
}

}  // namespace

bool parse_libsvm_row(std::string_view line, FunctionRef<std::string()> place, LibsvmRow& row) {
    line = line.substr(0, line.find('#'));
    const std::string_view label = take_word(line);
    if (label.empty()) return false;
    const std::optional<double> number = parse_number(label);
    if (!number || !std::isfinite(static_cast<float>(*number))) {
        const bool several = label.find(',') != std::string_view::npos;
        fail(ErrorKind::kData, "{}: \"{}\": {}", place(), shown(label),
             several ? "several labels of one row; one number is expected" : "a number is expected for the label");
    }
    row.label = *number;
    row.entries.clear();
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
        row.entries.push_back(entry_of(word, row.entries.empty() ? -1 : row.entries.back().index, place));
    }
    return true;
}

}  // namespace lockstep
