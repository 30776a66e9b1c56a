// Samples made from rows of text: held in memory where they are few, else made anew from the row on the disk each time.
// The same function makes them, so that nothing but speed depends on which.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/column.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// Values and labels of what a split holds in memory, row by row.
struct HeldRows {
    std::vector<float> values;  // [rows][channels]
    std::vector<int32_t> labels;
};

/// What of a split is not the rows.
struct TableSplit {
    int64_t rows = 0;
    SampleShape shape;
    int classes = 0;
    std::vector<Column> columns;
    std::string fingerprint;
    std::vector<std::string> class_names = {};  // where labels are words
};

/// Makes row `index`: its values, and returns its label. Called by several threads at once.
using RowMaker = std::function<int32_t(int64_t index, std::span<float> values)>;

std::unique_ptr<Dataset> held_table(TableSplit split, HeldRows rows);
std::unique_ptr<Dataset> made_table(TableSplit split, RowMaker maker);

/// Bytes of a split of so many rows and values of each, in memory.
int64_t held_bytes(int64_t rows, int64_t channels);

/// The most that a split of a table holds in memory.
inline constexpr int64_t kTableMemory = int64_t{256} << 20;

/// Things that one thread at a time uses, made when all are in use and kept for the next.
template <class T>
class Lent {
  public:
    template <class Use>
    auto use(Use&& use) {
        std::unique_ptr<T> one;
        {
            const std::lock_guard lock(mutex_);
            if (!free_.empty()) {
                one = std::move(free_.back());
                free_.pop_back();
            }
        }
        if (!one) one = std::make_unique<T>();
        auto result = use(*one);
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(one));
        return result;
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> free_;
};

}  // namespace lockstep
