// The columns of a table, resolved against a file and learned from the training data: from the fields of a row to the
// values and the label of a sample. Pure once learned.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/column.hpp"
#include "core/function_ref.hpp"
#include "data/columns.hpp"

namespace lockstep {

/// Texts to numbers from 0, looked up without copying the text.
class Vocabulary {
  public:
    int32_t find(std::string_view text) const {  // -1: not in it
        const auto at = ids_.find(text);
        return at == ids_.end() ? -1 : at->second;
    }
    void add(std::string_view text) { ids_.emplace(text, static_cast<int32_t>(ids_.size())); }
    int size() const { return static_cast<int>(ids_.size()); }
    std::vector<std::string> texts() const;  // in the order of their numbers

  private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

/// One column that values are made of.
struct TableColumn {
    /// Where the text of a category comes from: a field, or of a bucket its number.
    struct Part {
        int field = 0;
        std::vector<double> boundaries;  // empty: the field's text
        std::string strip;
    };

    ColumnSpec spec;
    std::vector<Part> parts;  // of a cross several, else one

    // Learned:
    Vocabulary vocabulary;  // of categories that are not hashed, and of the label
    int own = -1;           // the category of missing values
    float fill = 0;         // the number of missing values
    float mean = 0, std = 1;
    int64_t missing = 0;  // of the training data
    int64_t rows = 0;

    bool numeric() const { return spec.type == ColumnType::kNumeric || spec.type == ColumnType::kTarget; }
    int categories() const;  // 0: a number
    int categories_but_own() const;
    /// A label that nobody declared, of so many numbers that they may be what is to be learned.
    bool may_be_target() const;
};

/// Where a row stands, for messages; called for those alone.
using RowPlace = FunctionRef<std::string()>;

class TableColumns {
  public:
    /// Resolves specs against the names of the file's fields. Without a header the specs that are not made of others
    /// name the fields in their order. kUsage for what does not fit; the message lists the names there are.
    TableColumns(std::vector<ColumnSpec> specs, const std::vector<std::string>& names, bool header,
                 const std::string& label_column, const std::vector<std::string>& missing);

    const std::vector<std::string>& names() const { return names_; }
    int fields() const { return static_cast<int>(names_.size()); }
    int channels() const { return static_cast<int>(columns_.size()); }
    bool regression() const { return label_.spec.type == ColumnType::kTarget; }
    int classes() const { return regression() ? 0 : label_.vocabulary.size(); }
    std::vector<std::string> class_names() const {
        return regression() ? std::vector<std::string>() : label_.vocabulary.texts();
    }
    std::vector<Column> described() const;
    /// One line for each column: what it is, and what was taken for it.
    std::vector<std::string> notes() const;

    /// Fields of another file with a header of its own: the number of the field for each of names(). kData for a name
    /// that is not there.
    std::vector<int> order_of(const std::vector<std::string>& header, const std::string& path) const;

    /// values: channels() of them. Returns the label (of a regression the bits of the target). kData, with the place of
    /// the row, for what is no number or no label.
    int32_t encode(std::span<const std::string_view> fields, RowPlace place, std::span<float> values) const;

    /// kData, as encode(), where the row has no label, or none of a vocabulary from the config.
    void check_label(std::span<const std::string_view> fields, RowPlace place) const { encode_label(fields, place); }

    bool is_missing(std::string_view text) const;
    /// The text of a field as the column sees it; empty where it is missing.
    std::string_view text_of(std::span<const std::string_view> fields, const TableColumn::Part& part) const;
    /// The number in it; nothing where it is missing. kData where it is none.
    std::optional<double> number_of(std::span<const std::string_view> fields, const TableColumn& column,
                                    RowPlace place) const;
    /// What the vocabulary and the hash see: a text, or of a cross the texts of its parts, with U+001F between them.
    /// Empty where it (of a cross every part) is missing.
    std::string_view category_of(std::span<const std::string_view> fields, const TableColumn& column, RowPlace place,
                                 std::string& scratch) const;

    // Learning works on them.
    std::vector<TableColumn>& columns() { return columns_; }
    const std::vector<TableColumn>& columns() const { return columns_; }
    TableColumn& label() { return label_; }
    const TableColumn& label() const { return label_; }

  private:
    int32_t encode_label(std::span<const std::string_view> fields, RowPlace place) const;
    float scaled(const TableColumn& column, double value) const;

    std::vector<std::string> names_;
    std::vector<std::string> missing_;
    std::vector<TableColumn> columns_;  // in the order of a sample's values
    TableColumn label_;
};

}  // namespace lockstep
