#include "backend/cpu/gemm_loops.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int64_t kPanelBlockBytes =
    384 * 1024;  // of panels used together: leaves room for A in the second-level cache
constexpr int64_t kWholePanelBytes = 256 * 1024;  // a panel up to this size is used for all its k before the next tile

constexpr int64_t kParallelTerms = 1 << 16;

}  // namespace

void run_parts(CpuStream& stream, int64_t terms, FunctionRef<void(int part, int parts)> body) {
    if (terms < kParallelTerms) {
        body(0, 1);
    } else {
        stream.parallel(body);
    }
}

GemmShare gemm_share(int64_t tiles, int64_t panels, int part, int parts) {
    GemmShare share{{0, tiles}, {0, panels}};
    if (panels >= parts && panels >= tiles) {
        share.panels = part_of(panels, part, parts);
    } else {
        share.tiles = part_of(tiles, part, parts);
    }
    return share;
}

void run_gemm(const GemmKernels& kernels, const GemmPlan& plan, const float* a, const GemmPanels& b,
              const GemmOutput& out, const GemmShare& share) {
    const int64_t row_bytes = kernels.panel_width(plan.n) * static_cast<int64_t>(sizeof(float));
    const bool whole = plan.k * row_bytes <= kWholePanelBytes;
    const int64_t terms = whole ? plan.k : std::min(plan.k, plan.chain);
    const int64_t step = std::max<int64_t>(1, kPanelBlockBytes / std::max<int64_t>(1, terms * row_bytes));
    for (int64_t p = share.panels.begin; p < share.panels.end; p += step) {
        const IndexRange panels{p, std::min(share.panels.end, p + step)};
        if (whole) {  // the tile of C stays in the first-level cache from block to block
            kernels.run(plan, a, b, out, {share.tiles, panels, {0, plan.blocks}});
            continue;
        }
        for (int64_t block = 0; block < plan.blocks; ++block) {
            kernels.run(plan, a, b, out, {share.tiles, panels, {block, block + 1}});
        }
    }
}

void run_packing(const GemmKernels& kernels, const PackKernels& pack, const GemmPlan& plan, const float* a,
                 const GemmSource& b, const GemmOutput& out, const GemmShare& share, float* scratch) {
    const int width = kernels.panel_width(plan.n);
    const int64_t terms = std::min(plan.k, plan.chain);
    const int64_t panel_bytes = std::max<int64_t>(1, terms * width * static_cast<int64_t>(sizeof(float)));
    const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(kPackScratchBytes) / panel_bytes);
    const auto pack_part = b.k_contiguous ? pack.columns : pack.rows;
    for (int64_t p = share.panels.begin; p < share.panels.end; p += step) {
        const IndexRange panels{p, std::min(share.panels.end, p + step)};
        for (int64_t block = 0; block < plan.blocks; ++block) {
            const int64_t first = block * plan.chain;
            const IndexRange k{first, std::min<int64_t>(plan.k, first + plan.chain)};
            const int64_t panel_stride = (k.end - k.begin) * width;
            pack_part(b.data, b.stride, {k, panels, plan.n, width, panel_stride}, scratch);
            const GemmPanels packed{scratch, width, panel_stride, static_cast<int>(p), static_cast<int>(first)};
            kernels.run(plan, a, packed, out, {share.tiles, panels, {block, block + 1}});
        }
    }
}

}  // namespace lockstep
