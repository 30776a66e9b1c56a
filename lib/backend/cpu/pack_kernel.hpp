// Copies of a matrix as panels: [panel][k][width], the order in which a register tile reads it. Columns that do not
// exist are zeros.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

/// Which part of which panels: `to` is where the first k of the first panel of the ranges goes, panels are
/// `panel_stride` apart there. `columns`: of the whole matrix.
struct PackRange {
    IndexRange k;
    IndexRange panels;
    int64_t columns;
    int width;  // even
    int64_t panel_stride;
};

struct PackKernels {
    /// Element (k, column) is from[k * stride + column].
    void (*rows)(const float* from, int64_t stride, const PackRange& range, float* to) = nullptr;
    /// Element (k, column) is from[column * stride + k].
    void (*columns)(const float* from, int64_t stride, const PackRange& range, float* to) = nullptr;
};

/// Empty for kScalar.
const PackKernels& pack_kernels(Isa isa);

}  // namespace lockstep
