// Weight gradient of a dense layer with the canonical tree inside: a register tile runs each shard's chain, a stack of
// tiles in the first-level cache does the tree's additions, and each root is stored once. No buffer per shard exists,
// so that many shards cost hardly more than one.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/cpu_backend.hpp"
#include "core/canonical_tree.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

struct DenseWgradOperands {
    const float* dy;  // panels of tile_rows output features: [panel][sample][tile_rows]
    const float* x;   // panels of panel_width input features: [panel][sample][panel_width]
    int64_t in;
    int64_t out;
    std::span<float* const> dw;  // of each root: [out][in]
};

struct DenseWgradKernels {
    int tile_rows = 0;
    int panel_width = 0;
    /// Panels `dy_panels` x `x_panels` of dW; `chains`: see chains_of.
    void (*run)(const FoldProgram& chains, const DenseWgradOperands& operands, IndexRange dy_panels,
                IndexRange x_panels) = nullptr;
};

/// The same sum with a leaf for every chain: a shard of several blocks of samples is a block, and an addition after
/// each further one. Needs one more value on the stack.
FoldProgram chains_of(const FoldProgram& fold);

/// Empty for kScalar.
const DenseWgradKernels& dense_wgrad_kernels(Isa isa);

}  // namespace lockstep
