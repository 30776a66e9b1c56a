// What moves features, on the threads of a stream: copies, so there is nothing to define and one kernel for all.
#include <algorithm>

#include "backend/cpu/cpu_operations.hpp"
#include "backend/cpu/slices.hpp"
#include "backend/expand_columns.hpp"

namespace lockstep {
namespace {

class CpuExpand final : public Expand {
  public:
    CpuExpand(int in_columns, std::span<const ExpandColumn> columns)
        : in_columns_(in_columns),
          columns_(columns.begin(), columns.end()),
          elements_(expanded_elements(in_columns, columns)) {}

    void forward(Stream& stream, int rows, const float* x, float* y) override {
        for_slices(cpu_stream(stream), rows, 1, rows * elements_ >= kElementsWorthThreads,
                   [&](int64_t begin, int64_t end) {
                       for (int64_t r = begin; r < end; ++r) expand_row(x + r * in_columns_, y + r * elements_);
                   });
    }

  private:
    void expand_row(const float* x, float* y) const {
        for (const ExpandColumn& each : columns_) {
            const float value = x[each.column];
            if (each.width == 0) {
                *y++ = value;
                continue;
            }
            std::fill_n(y, each.width, 0.0F);
            // A NaN fails the first comparison, a fraction the last.
            if (value >= 0.0F && value < static_cast<float>(each.width)) {
                const int id = static_cast<int>(value);
                if (static_cast<float>(id) == value) y[id] = 1.0F;
            }
            y += each.width;
        }
    }

    int in_columns_;
    std::vector<ExpandColumn> columns_;
    int64_t elements_;
};

}  // namespace

std::unique_ptr<Expand> CpuOperations::plan_expand(int in_columns, std::span<const ExpandColumn> columns) {
    return std::make_unique<CpuExpand>(in_columns, columns);
}

void CpuOperations::copy_part(Stream& stream, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                              RowPart to_part) {
    for_slices(cpu_stream(stream), rows, 1, rows * width >= kElementsWorthThreads, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            std::copy_n(from + r * from_part.stride + from_part.first, width, to + r * to_part.stride + to_part.first);
        }
    });
}

void CpuOperations::fill(Stream& stream, int64_t n, float value, float* x) {
    for_slices(cpu_stream(stream), n, kLineFloats, n >= kElementsWorthThreads,
               [&](int64_t begin, int64_t end) { std::fill(x + begin, x + end, value); });
}

}  // namespace lockstep
