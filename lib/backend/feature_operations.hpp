// What moves features without computing: channels of several maps beside each other, and columns of a table to one-hot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/stream.hpp"

namespace lockstep {

/// One column of the input and what becomes of it: the number itself (width 0: one element), or `width` elements of
/// which that of the id is 1. An id outside, -1 among them, gives zeros.
struct ExpandColumn {
    int column = 0;
    int width = 0;
    bool operator==(const ExpandColumn&) const = default;
};

/// [rows][columns] to [rows][elements], the parts in the order of the plan.
class Expand {
  public:
    virtual ~Expand() = default;
    virtual void forward(Stream&, int rows, const float* x, float* y) = 0;
};

/// Part of a row: `width` elements from `first` on of rows of `stride` elements.
struct RowPart {
    int stride = 0;
    int first = 0;
};

class FeatureOperations {
  public:
    virtual ~FeatureOperations() = default;

    virtual std::unique_ptr<Expand> plan_expand(int in_columns, std::span<const ExpandColumn> columns) = 0;
    /// to[r][to_part.first + j] = from[r][from_part.first + j] for j < width.
    virtual void copy_part(Stream&, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                           RowPart to_part) = 0;
    virtual void fill(Stream&, int64_t n, float value, float* x) = 0;
};

}  // namespace lockstep
