// What every backend's expansion of columns checks before anything is planned.
#pragma once

#include <cstdint>
#include <span>

#include "backend/feature_operations.hpp"

namespace lockstep {

/// Elements of a row once its columns are expanded. Throws kUsage where there is no such column or width.
int64_t expanded_elements(int in_columns, std::span<const ExpandColumn> columns);

}  // namespace lockstep
