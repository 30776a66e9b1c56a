// The loops around the register tiles: in which order one thread visits tiles, blocks of k and panels of columns, so
// that what it reads again is still in a cache. No order changes a bit.
#pragma once

#include "backend/cpu/cpu_context.hpp"
#include "backend/cpu/gemm_kernel.hpp"
#include "backend/cpu/pack_kernel.hpp"

namespace lockstep {

/// What run_packing needs of scratch: one block of k of as many panels as stay in the second-level cache.
inline constexpr std::size_t kPackScratchBytes = 384 * 1024;

/// body(part, parts) on the stream's threads at once; on the caller alone where `terms`, the products in all, are too
/// few to pay for waking the others.
void run_parts(CpuStream& stream, int64_t terms, FunctionRef<void(int part, int parts)> body);

/// Tiles and panels of one thread, when `parts` share a product: panels where there are enough, else tiles.
struct GemmShare {
    IndexRange tiles;
    IndexRange panels;
};
GemmShare gemm_share(int64_t tiles, int64_t panels, int part, int parts);

/// B lies ready: packed panels, or a matrix whose rows are read in place (every panel of the range whole).
void run_gemm(const GemmKernels& kernels, const GemmPlan& plan, const float* a, const GemmPanels& b,
              const GemmOutput& out, const GemmShare& share);

/// A matrix to be packed on the way: element (k, column) at data[k * stride + column], or at data[column * stride + k].
struct GemmSource {
    const float* data;
    int64_t stride;
    bool k_contiguous;
};

/// Packs each part of B just before its use. For products so tall that every packed value is used often, or so flat (a
/// few rows) that reading B is all there is to do.
void run_packing(const GemmKernels& kernels, const PackKernels& pack, const GemmPlan& plan, const float* a,
                 const GemmSource& b, const GemmOutput& out, const GemmShare& share, float* scratch);

}  // namespace lockstep
