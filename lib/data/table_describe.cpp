// The columns of a table for the network that reads them, and in words for people.
#include <fmt/ranges.h>

#include <algorithm>

#include "data/table_columns.hpp"
#include "data/table_text.hpp"

namespace lockstep {
namespace {

constexpr int kManyClasses = 100;

std::string missing_words(const TableColumn& column) {
    if (column.missing == 0) return "";
    const std::string count = fmt::format("; {} of {} missing", column.missing, column.rows);
    if (column.spec.missing == MissingPolicy::kRefuse) return count;
    if (column.numeric()) return fmt::format("{}: {} for them", count, column.fill);
    return fmt::format("{}: {}", count, column.own >= 0 ? "a category of their own" : "no category");
}

std::string words(const TableColumn& column) {
    const ColumnSpec& spec = column.spec;
    if (column.numeric()) {
        const bool scaled = column.mean != 0 || column.std != 1;
        return fmt::format("{}{}", type_name(spec.type),
                           scaled ? fmt::format(", (x - {}) / {}", column.mean, column.std) : "");
    }
    if (spec.type == ColumnType::kBucket) {
        return fmt::format("{} buckets of {}", spec.boundaries.size() + 1, fmt::join(spec.of, ", "));
    }
    std::string text = spec.type == ColumnType::kCross ? fmt::format("{} together, ", fmt::join(spec.of, " x ")) : "";
    if (spec.hash > 0) return text + fmt::format("hashed into {}", spec.hash);
    text += fmt::format("{} {}", column.vocabulary.size(), spec.type == ColumnType::kLabel ? "classes" : "categories");
    if (spec.type == ColumnType::kCross) return text;
    return text + shown(fmt::format(" ({})", fmt::join(column.vocabulary.texts(), ", ")));
}

}  // namespace

bool TableColumn::may_be_target() const {
    if (!spec.guessed || spec.type != ColumnType::kLabel || vocabulary.size() <= kManyClasses) return false;
    const std::vector<std::string> texts = vocabulary.texts();
    return std::all_of(texts.begin(), texts.end(), [](const auto& text) { return parse_number(text).has_value(); });
}

std::vector<Column> TableColumns::described() const {
    std::vector<Column> described;
    for (const TableColumn& column : columns_) {
        const ColumnSpec& spec = column.spec;
        described.push_back({spec.name, column.categories(), spec.embedding, spec.wide, spec.deep});
    }
    return described;
}

std::vector<std::string> TableColumns::notes() const {
    std::vector<std::string> notes;
    for (const TableColumn& column : columns_) {
        notes.push_back(fmt::format("{}: {}{}", column.spec.name, words(column), missing_words(column)));
    }
    const char* const role = regression() ? "" : "label, ";
    const char* const doubt =
        label_.may_be_target() ? "; a number to be learned? Then type = \"target\" or train.loss = \"mse\"" : "";
    notes.push_back(fmt::format("{}: {}{}{}", label_.spec.name, role, words(label_), doubt));
    return notes;
}

}  // namespace lockstep
