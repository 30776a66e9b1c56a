#include "data/table_learner.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/log.hpp"
#include "data/table_text.hpp"
#include "io/shown_path.hpp"

namespace lockstep {
namespace {

constexpr size_t kMostCategories = size_t{1} << 24;  // ids are exact in fp32

bool is_whole(std::string_view text, int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

/// Byte order; labels that are whole numbers in the order of the numbers.
std::vector<std::string> in_order(const std::unordered_set<std::string>& texts, bool label) {
    std::vector<std::string> sorted(texts.begin(), texts.end());
    std::sort(sorted.begin(), sorted.end());
    int64_t a = 0, b = 0;
    if (label && std::all_of(sorted.begin(), sorted.end(), [&](const auto& text) { return is_whole(text, a); })) {
        std::stable_sort(sorted.begin(), sorted.end(), [&](const std::string& left, const std::string& right) {
            return is_whole(left, a) && is_whole(right, b) && a < b;
        });
    }
    return sorted;
}

bool needs_vocabulary(const TableColumn& column) {
    const ColumnSpec& spec = column.spec;
    const bool categories =
        spec.type == ColumnType::kCategorical || spec.type == ColumnType::kCross || spec.type == ColumnType::kLabel;
    return categories && spec.hash == 0 && spec.vocabulary.empty();
}

}  // namespace

TableLearner::TableLearner(TableColumns& columns, bool squared)
    : columns_(columns), seen_(columns.columns().size() + 1), typos_(columns.columns().size()) {
    TableColumn& label = columns_.label();
    if (squared) label.spec.type = ColumnType::kTarget;
    label_guessed_ = label.spec.guessed && label.spec.type == ColumnType::kLabel;
    for (const std::string& text : label.spec.vocabulary) label.vocabulary.add(text);
}

bool TableLearner::guesses() const {
    const auto& columns = columns_.columns();
    return label_guessed_ ||
           std::any_of(columns.begin(), columns.end(), [](const auto& c) { return c.spec.type == ColumnType::kGuess; });
}

void TableLearner::guess(std::span<const std::string_view> fields) {
    for (size_t c = 0; c < columns_.columns().size(); ++c) {
        const TableColumn& column = columns_.columns()[c];
        if (column.spec.type == ColumnType::kGuess) look(column, fields, seen_[c]);
    }
    if (label_guessed_) look(columns_.label(), fields, seen_.back());
}

void TableLearner::look(const TableColumn& column, std::span<const std::string_view> fields, Seen& seen) const {
    const std::string_view text = columns_.text_of(fields, column.parts.front());
    if (text.empty()) return;
    const std::optional<double> value = parse_number(text);
    const bool number = value && std::isfinite(static_cast<float>(*value));
    if (!number && seen.others++ == 0) seen.other = text;
    seen.numbers = seen.numbers && number;
    seen.whole = seen.whole && seen.numbers && *value == std::floor(*value);
    ++seen.count;
}

/// One typing error makes categories, and another network, of a column of numbers.
void TableLearner::warn_of_typos() {
    constexpr int64_t kFew = 10;  // one in so many
    std::string first;
    int64_t more = -1;
    for (size_t c = 0; c < seen_.size(); ++c) {
        const Seen& seen = seen_[c];
        const bool label = c == columns_.columns().size();
        if (seen.others == 0 || seen.others * kFew > seen.count) continue;
        if (!label) typos_[c] = true;
        if (++more > 0) continue;
        const TableColumn& column = label ? columns_.label() : columns_.columns()[c];
        first =
            fmt::format("column {} is taken for categories, as {} of its {} values are no numbers (the first: \"{}\")",
                        shown_path(column.spec.name), seen.others, seen.count, shown(seen.other));
    }
    if (more < 0) return;
    warn("{}{}; if they are missing values, add them to data.missing, else say type = \"categorical\" in data.columns",
         first, more == 0 ? "" : fmt::format(" (and {} more such column{})", more, more == 1 ? "" : "s"));
}

void TableLearner::end_guessing() {
    for (size_t c = 0; c < columns_.columns().size(); ++c) {
        ColumnSpec& spec = columns_.columns()[c].spec;
        if (spec.type != ColumnType::kGuess) continue;
        const bool numbers = seen_[c].numbers && seen_[c].count > 0;
        spec.type = numbers ? ColumnType::kNumeric : ColumnType::kCategorical;
        spec.standard = numbers && spec.mean == 0 && spec.std == 1;
    }
    const Seen& label = seen_.back();
    if (label_guessed_ && label.numbers && !label.whole) columns_.label().spec.type = ColumnType::kTarget;
    warn_of_typos();
    std::fill(seen_.begin(), seen_.end(), Seen());
}

void TableLearner::learn(std::span<const std::string_view> fields, RowPlace place) {
    for (size_t c = 0; c < columns_.columns().size(); ++c) add(columns_.columns()[c], seen_[c], fields, place);
    TableColumn& label = columns_.label();
    add(label, seen_.back(), fields, place);
    if (label.missing > 0 || !label.spec.vocabulary.empty()) columns_.check_label(fields, place);
    ++rows_;
}

void TableLearner::check_held_out(std::span<const std::string_view> fields, RowPlace place) {
    const auto number = [](const TableColumn& c) { return c.numeric() || c.spec.type == ColumnType::kBucket; };
    for (const TableColumn& column : columns_.columns()) {
        if (number(column)) columns_.number_of(fields, column, place);
    }
    TableColumn& label = columns_.label();
    if (label.numeric()) {
        columns_.number_of(fields, label, place);
        return;
    }
    add(label, seen_.back(), fields, place);
    if (label.missing > 0 || !label.spec.vocabulary.empty()) columns_.check_label(fields, place);
}

void TableLearner::add(TableColumn& column, Seen& seen, std::span<const std::string_view> fields,
                       RowPlace place) const {
    if (column.numeric() || column.spec.type == ColumnType::kBucket) {
        const std::optional<double> value = columns_.number_of(fields, column, place);
        if (!value) {
            ++column.missing;
            return;
        }
        ++seen.count;
        const auto x = static_cast<double>(static_cast<float>(*value));
        const double difference = x - seen.mean;
        seen.mean += difference / static_cast<double>(seen.count);
        seen.squares += difference * (x - seen.mean);
        return;
    }
    std::string scratch;
    const std::string_view text = columns_.category_of(fields, column, place, scratch);
    if (text.empty()) {
        ++column.missing;
    } else if (needs_vocabulary(column)) {
        if (seen.texts.size() == kMostCategories) {
            fail(ErrorKind::kData, "{}: column {} has more than {} different values; set hash", place(),
                 column.spec.name, kMostCategories);
        }
        seen.texts.emplace(text);
    }
}

void TableLearner::finish_column(TableColumn& column, const Seen& seen) {
    const ColumnSpec& spec = column.spec;
    if (column.numeric()) {
        column.mean = static_cast<float>(spec.standard ? seen.mean : spec.mean);
        const double deviation = seen.count > 0 ? std::sqrt(seen.squares / static_cast<double>(seen.count)) : 0;
        column.std = static_cast<float>(spec.standard ? deviation : spec.std);
        if (!(column.std > 0)) column.std = 1;  // a column that never varies
        column.fill = static_cast<float>(spec.missing == MissingPolicy::kFill ? spec.fill : seen.mean);
        return;
    }
    if (spec.type != ColumnType::kLabel) {  // whose own are there already
        for (const std::string& text : spec.vocabulary) column.vocabulary.add(text);
    }
    if (needs_vocabulary(column)) {
        for (const std::string& text : in_order(seen.texts, spec.type == ColumnType::kLabel)) {
            column.vocabulary.add(text);
        }
    }
    const bool own =
        spec.missing == MissingPolicy::kOwn || (spec.missing == MissingPolicy::kUsual && column.missing > 0);
    if (own && spec.type != ColumnType::kLabel) column.own = column.categories_but_own();
}

/// A column of names or numbers of rows tells a network nothing, and makes as many one-hot values as there are rows.
void TableLearner::warn_of_ids(const std::string& path) const {
    constexpr int kFew = 20;  // of so few rows each may well be another
    std::string first;
    int64_t others = -1;
    for (size_t c = 0; c < columns_.columns().size(); ++c) {
        const TableColumn& column = columns_.columns()[c];
        const int64_t values = column.rows - column.missing;
        const bool guessed = column.spec.guessed && column.spec.type == ColumnType::kCategorical && !typos_[c];
        if (!guessed || column.vocabulary.size() <= kFew || 2 * int64_t{column.vocabulary.size()} <= values) continue;
        if (++others > 0) continue;
        first = fmt::format("column {} is taken for categories, {} of them in {} rows", shown_path(column.spec.name),
                            column.vocabulary.size(), column.rows);
    }
    if (others < 0) return;
    const std::string more =
        others == 0 ? "" : fmt::format(" (and {} more such column{})", others, others == 1 ? "" : "s");
    warn(
        "{}: {}{}: if they name or number the rows, leave them out with type = \"skip\" in data.columns; hash or "
        "embedding makes fewer values of them",
        path, first, more);
}

void TableLearner::finish(const std::string& path) {
    if (rows_ == 0) fail(ErrorKind::kData, "{}: no records", path);
    for (size_t c = 0; c < columns_.columns().size(); ++c) {
        TableColumn& column = columns_.columns()[c];
        column.rows = rows_;
        finish_column(column, seen_[c]);
        if (!column.numeric() && column.categories() == 0) {
            fail(ErrorKind::kData, "{}: column {}: every value is missing; give it type = \"skip\"", path,
                 column.spec.name);
        }
    }
    warn_of_ids(path);
    TableColumn& label = columns_.label();
    label.rows = rows_;
    finish_column(label, seen_.back());
    if (label.spec.type == ColumnType::kTarget) return;
    const int classes = label.vocabulary.size();
    if (classes < 2) {
        fail(ErrorKind::kData, "{}: column {}: one label alone ({}), at least 2 are needed", path, label.spec.name,
             classes == 0 ? "" : shown(label.vocabulary.texts().front()));
    }
    if (label.may_be_target()) {
        warn(
            "{}: column {} was taken for the label: {} classes, all of them numbers; if the number is to be learned, "
            "declare it as type = \"target\" in [[data.columns]], or set train.loss = \"mse\"",
            path, label.spec.name, classes);
    }
}

}  // namespace lockstep
