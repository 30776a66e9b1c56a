#include "data/table_columns.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

constexpr char kBetweenParts = '\x1f';

int bucket_of(const std::vector<double>& boundaries, double value) {
    return static_cast<int>(std::upper_bound(boundaries.begin(), boundaries.end(), value) - boundaries.begin());
}

int32_t hashed(std::string_view text, int64_t buckets) {
    const uint64_t hash = hash64(std::as_bytes(std::span(text)));
    return static_cast<int32_t>(hash % static_cast<uint64_t>(buckets));
}

}  // namespace

std::vector<std::string> Vocabulary::texts() const {
    std::vector<std::string> texts(ids_.size());
    for (const auto& [text, id] : ids_) texts[static_cast<size_t>(id)] = text;
    return texts;
}

int TableColumn::categories_but_own() const {
    if (numeric()) return 0;
    if (spec.type == ColumnType::kBucket) return static_cast<int>(spec.boundaries.size()) + 1;
    return spec.hash > 0 ? static_cast<int>(spec.hash) : vocabulary.size();
}

int TableColumn::categories() const {
    return categories_but_own() + (own >= 0 ? 1 : 0);
}

bool TableColumns::is_missing(std::string_view text) const {
    // As NumPy and R write a number that is none; a category may be called so only where others would misread it, too.
    const bool nan = text == "nan" || text == "NaN" || text == "NAN";
    return nan || std::find(missing_.begin(), missing_.end(), text) != missing_.end();
}

std::string_view TableColumns::text_of(std::span<const std::string_view> fields, const TableColumn::Part& part) const {
    std::string_view text = fields[static_cast<size_t>(part.field)];
    if (!part.strip.empty()) {
        while (!text.empty() && part.strip.find(text.back()) != std::string::npos) text.remove_suffix(1);
    }
    return is_missing(text) ? std::string_view() : text;
}

std::optional<double> TableColumns::number_of(std::span<const std::string_view> fields, const TableColumn& column,
                                              RowPlace place) const {
    const TableColumn::Part& part = column.parts.front();
    const std::string_view text = text_of(fields, part);
    if (text.empty()) return std::nullopt;
    const std::optional<double> value = parse_number(text);
    if (value && std::isfinite(static_cast<float>(*value))) return value;
    fail(ErrorKind::kData,
         "{}: column {}: \"{}\" is no number that fp32 can hold; declare the column categorical, or "
         "add it to data.missing",
         place(), names_[static_cast<size_t>(part.field)], shown(text));
}

std::string_view TableColumns::category_of(std::span<const std::string_view> fields, const TableColumn& column,
                                           RowPlace place, std::string& scratch) const {
    if (column.parts.size() == 1) return text_of(fields, column.parts.front());
    scratch.clear();
    bool any = false;
    for (const TableColumn::Part& part : column.parts) {
        if (&part != &column.parts.front()) scratch += kBetweenParts;
        const std::string_view text = text_of(fields, part);
        any = any || !text.empty();
        if (part.boundaries.empty() || text.empty()) {
            scratch += text;
            continue;
        }
        const std::optional<double> value = parse_number(text);
        if (!value) {
            fail(ErrorKind::kData, "{}: column {}: \"{}\" is no number", place(),
                 names_[static_cast<size_t>(part.field)], shown(text));
        }
        scratch += std::to_string(bucket_of(part.boundaries, *value));
    }
    return any ? std::string_view(scratch) : std::string_view();
}

float TableColumns::scaled(const TableColumn& column, double value) const {
    return (static_cast<float>(value) - column.mean) / column.std;  // two IEEE operations, as for pixels
}

int32_t TableColumns::encode(std::span<const std::string_view> fields, RowPlace place, std::span<float> values) const {
    std::string scratch;
    for (size_t c = 0; c < columns_.size(); ++c) {
        const TableColumn& column = columns_[c];
        const auto refuse_missing = [&] {
            if (column.spec.missing != MissingPolicy::kRefuse) return;
            fail(ErrorKind::kData, "{}: column {}: the value is missing", place(), column.spec.name);
        };
        if (column.spec.type == ColumnType::kNumeric || column.spec.type == ColumnType::kBucket) {
            const std::optional<double> value = number_of(fields, column, place);
            if (!value) refuse_missing();
            if (column.spec.type == ColumnType::kNumeric) {
                values[c] = scaled(column, value.value_or(static_cast<double>(column.fill)));
            } else {
                const bool filled = value || column.spec.missing == MissingPolicy::kFill;
                const double number = value.value_or(column.spec.fill);
                values[c] = static_cast<float>(filled ? bucket_of(column.spec.boundaries, number) : column.own);
            }
            continue;
        }
        const std::string_view text = category_of(fields, column, place, scratch);
        if (text.empty()) {
            refuse_missing();
            values[c] = static_cast<float>(column.own);
        } else {
            values[c] = static_cast<float>(column.spec.hash > 0 ? hashed(text, column.spec.hash)
                                                                : column.vocabulary.find(text));
        }
    }
    return encode_label(fields, place);
}

int32_t TableColumns::encode_label(std::span<const std::string_view> fields, RowPlace place) const {
    const std::string& name = label_.spec.name;
    if (regression()) {
        const std::optional<double> value = number_of(fields, label_, place);
        if (!value) fail(ErrorKind::kData, "{}: column {}: the target is missing", place(), name);
        return std::bit_cast<int32_t>(scaled(label_, *value));
    }
    const std::string_view text = text_of(fields, label_.parts.front());
    const int32_t id = label_.vocabulary.find(text);
    if (id >= 0) return id;
    if (text.empty()) fail(ErrorKind::kData, "{}: column {}: the label is missing", place(), name);
    const bool final_character = label_.vocabulary.find(text.substr(0, text.size() - 1)) >= 0;
    fail(ErrorKind::kData, "{}: column {}: label \"{}\" is none of the {} known: {}{}", place(), name, shown(text),
         label_.vocabulary.size(), shown(fmt::format("{}", fmt::join(label_.vocabulary.texts(), ", "))),
         final_character ? fmt::format("; strip = \"{}\" would take its last character off", text.back()) : "");
}

}  // namespace lockstep
