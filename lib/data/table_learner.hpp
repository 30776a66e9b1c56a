// What the training data say about the columns of a table: types that were not declared, vocabularies, means. Rows are
// shown in their order; sums are fp64, so that the result is a function of the data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/table_columns.hpp"

namespace lockstep {

class TableLearner {
  public:
    /// `squared`: the loss is of numbers, so the label is a target.
    TableLearner(TableColumns& columns, bool squared);

    /// Whether types are to be guessed first, from all rows.
    bool guesses() const;
    void guess(std::span<const std::string_view> fields);
    void end_guessing();

    void learn(std::span<const std::string_view> fields, RowPlace place);
    /// A row that is held out for validation: what it says of columns is not learned, but which classes there are.
    void check_held_out(std::span<const std::string_view> fields, RowPlace place);
    /// kData, naming `path`, where they cannot be learned from: no rows, one class.
    void finish(const std::string& path);

  private:
    /// Of one column.
    struct Seen {
        bool numbers = true, whole = true;  // as guessed
        int64_t count = 0;                  // of values that are there
        int64_t others = 0;                 // of them, those that are no numbers
        std::string other;                  // the first
        double mean = 0, squares = 0;       // sum of squared differences from the mean (Welford)
        std::unordered_set<std::string> texts;
    };

    void look(const TableColumn& column, std::span<const std::string_view> fields, Seen& seen) const;
    void add(TableColumn& column, Seen& seen, std::span<const std::string_view> fields, RowPlace place) const;
    void warn_of_typos();
    void warn_of_ids(const std::string& path) const;
    static void finish_column(TableColumn& column, const Seen& seen);

    TableColumns& columns_;
    bool label_guessed_ = false;
    std::vector<Seen> seen_;   // of columns, then of the label
    std::vector<bool> typos_;  // of columns: a warning says so already
    int64_t rows_ = 0;
};

}  // namespace lockstep
