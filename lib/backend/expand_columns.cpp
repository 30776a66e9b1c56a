#include "backend/expand_columns.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep {

int64_t expanded_elements(int in_columns, std::span<const ExpandColumn> columns) {
    int64_t elements = 0;
    for (const ExpandColumn& each : columns) {
        if (each.column < 0 || each.column >= in_columns || each.width < 0) {
            fail(ErrorKind::kUsage, "column {} of {}, expanded to {} elements: there is no such column or width",
                 each.column, in_columns, each.width);
        }
        elements += std::max(each.width, 1);
    }
    return elements;
}

}  // namespace lockstep
