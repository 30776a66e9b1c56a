#include "data/table_data.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace lockstep {
namespace {

class TableDataset : public Dataset {
  public:
    explicit TableDataset(TableSplit split) : split_(std::move(split)) {}
    int64_t size() const override { return split_.rows; }
    SampleShape shape() const override { return split_.shape; }
    int classes() const override { return split_.classes; }
    std::vector<Column> columns() const override { return split_.columns; }
    std::string fingerprint() const override { return split_.fingerprint; }
    std::vector<std::string> class_names() const override { return split_.class_names; }

  protected:
    void check(int64_t index) const {
        if (index >= 0 && index < split_.rows) return;
        fail(ErrorKind::kRuntime, "sample {} was asked of a data set of {}", index, split_.rows);
    }
    void check(int64_t index, std::span<float> values) const {
        check(index);
        if (static_cast<int64_t>(values.size()) == channels()) return;
        fail(ErrorKind::kRuntime, "{} values were asked of a sample of {}", values.size(), channels());
    }
    int64_t channels() const { return split_.shape.elements(); }

  private:
    TableSplit split_;
};

class HeldTable final : public TableDataset {
  public:
    HeldTable(TableSplit split, HeldRows rows) : TableDataset(std::move(split)), rows_(std::move(rows)) {}

    int32_t read(int64_t index, std::span<float> values) const override {
        check(index, values);
        std::copy_n(rows_.values.begin() + index * channels(), channels(), values.begin());
        return rows_.labels[static_cast<size_t>(index)];
    }
    int32_t label(int64_t index) const override {
        check(index);
        return rows_.labels[static_cast<size_t>(index)];
    }

  private:
    HeldRows rows_;
};

class MadeTable final : public TableDataset {
  public:
    MadeTable(TableSplit split, RowMaker maker) : TableDataset(std::move(split)), maker_(std::move(maker)) {}

    int32_t read(int64_t index, std::span<float> values) const override {
        check(index, values);
        return maker_(index, values);
    }
    int32_t label(int64_t index) const override {
        check(index);
        std::vector<float> values(static_cast<size_t>(channels()));
        return maker_(index, values);
    }

  private:
    RowMaker maker_;
};

}  // namespace

std::unique_ptr<Dataset> held_table(TableSplit split, HeldRows rows) {
    return std::make_unique<HeldTable>(std::move(split), std::move(rows));
}

std::unique_ptr<Dataset> made_table(TableSplit split, RowMaker maker) {
    return std::make_unique<MadeTable>(std::move(split), std::move(maker));
}

int64_t held_bytes(int64_t rows, int64_t channels) {
    int64_t bytes = 0;
    const int64_t row = channels * static_cast<int64_t>(sizeof(float)) + static_cast<int64_t>(sizeof(int32_t));
    return __builtin_mul_overflow(rows, row, &bytes) ? std::numeric_limits<int64_t>::max() : bytes;
}

}  // namespace lockstep
