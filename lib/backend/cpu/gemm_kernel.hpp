// The register tiles of a matrix product whose output rows are given by a plan: dense layers and convolutions, forward
// and data gradient. A tile holds R rows x 1, 2 or 4 vectors of columns; each block of k is one fma chain per element.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/cpu/gemm_plan.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

/// B as panels of `GemmKernels::panel_width(n)` columns: row k of panel p starts at b + (p - first_panel) *
/// panel_stride + (k - first_k) * ldb, and a whole panel row is read (packed panels end in zeros).
struct GemmPanels {
    const float* b;
    int64_t ldb;
    int64_t panel_stride;
    int first_panel = 0;
    int first_k = 0;
};

/// C gets the sum so far after every block, and after the last one the bias (may be null) and relu.
struct GemmOutput {
    float* c;
    const float* bias;
    bool relu;
};

struct GemmRange {
    IndexRange tiles;
    IndexRange panels;
    IndexRange blocks;
};

struct GemmKernels {
    int (*panel_width)(int n) = nullptr;  // for n columns in all
    GemmTileRows tile_rows;
    int panels(int n) const { return (n + panel_width(n) - 1) / panel_width(n); }

    /// For each tile, for each block, for each panel of the range. A block needs those before it to have been run.
    void (*run)(const GemmPlan& plan, const float* a, const GemmPanels& b, const GemmOutput& out,
                const GemmRange& range) = nullptr;
};

/// Empty for kScalar: the reference needs no tiles.
const GemmKernels& gemm_kernels(Isa isa);

}  // namespace lockstep
