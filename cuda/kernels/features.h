// What moves features on a GPU without computing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/feature_operations.hpp"

namespace lockstep {

/// to[r][to_part.first + j] = from[r][from_part.first + j] for j < width.
void launch_copy_part(int64_t rows, int width, const float* from, RowPart from_part, float* to, RowPart to_part,
                      cudaStream_t stream);
void launch_fill(int64_t n, float value, float* x, cudaStream_t stream);

/// An element of an expanded row: input `column` itself where id < 0, else whether the column holds `id`.
struct ExpandedElement {
    int32_t column, id;
};
/// y [rows][elements] of x [rows][columns]; `plan` lies on the device, an entry for each element.
void launch_expand(int64_t rows, int columns, int elements, const ExpandedElement* plan, const float* x, float* y,
                   cudaStream_t stream);

}  // namespace lockstep
