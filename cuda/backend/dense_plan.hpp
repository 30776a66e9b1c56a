// Which tile a dense layer's products take on a GPU, and whether their sums are split. Pure functions of shapes and of
// the device's size: they decide speed and never a bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/canonical_tree.hpp"
#include "cuda/kernels/gemm.h"

namespace lockstep {

/// What the choice knows of a device.
struct GemmDevice {
    int multiprocessors = 1;
    std::size_t shared_bytes = 0;  // most of a thread block
};

/// A sum of `depth` terms for each of rows x columns outputs.
struct GemmSize {
    int rows, columns, depth;
};

/// Floats of `partial` that a split takes for `chains` chains.
constexpr int64_t gemm_partial_floats(const GemmSize& size, int64_t chains) {
    return chains * size.rows * size.columns;
}

/// For gemm_forward and gemm_backward_data.
GemmWay gemm_way(const GemmDevice& device, const GemmSize& size);

/// The fold program of a layer as kernels read it: a root's chains, and a root's shards, stand side by side.
struct DenseFold {
    struct Root {
        int first_chain, chains;
        int kept;  // most chains that wait on the stack
        int first_shard, shards;
        int samples;
    };
    std::vector<Root> roots;
    std::vector<FoldLeaf> leaves;  // for each chain of the weight gradient, then for each shard
};
/// A shard of more than kGemmChain samples has several chains: the further ones are added to those before.
DenseFold dense_fold(const FoldProgram& fold);

/// For gemm_weight_gradient of one root.
GemmWay gradient_way(const GemmDevice& device, int in, int out, const DenseFold::Root& root);

}  // namespace lockstep
