// The choice compares estimates made from counts alone: products that a multiprocessor must issue, loads from shared
// memory beside them, values that wait on a stack, and parts of sums that travel through memory.
#include "cuda/backend/dense_plan.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

constexpr double kProductsPerCycle = 128;     // of a multiprocessor of sm_90 and sm_100; sm_80 has half, for every tile
constexpr double kSharedBytesPerCycle = 128;  // of a multiprocessor
constexpr double kMemoryBytesPerCycle = 32;   // of a multiprocessor's share of the second-level cache
constexpr double kLaunchCycles = 5000;        // of a second kernel behind the first
constexpr int64_t kMostPartial = int64_t{32} << 20;  // bytes of parts of sums; a split beyond has outputs enough
constexpr int kMostParts = 65535;                    // gridDim.z

int64_t ceiling(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple;
}

// Cycles of a thread block's step along the sum. A load of 16 bytes from shared memory serves 16, 10.7 or 8 products:
// the fewer, the less of the time is left for products. The factors are estimates.
struct StepCost {
    double block;  // issued by one block alone: a warp issues one product of 32 lanes a cycle
    double share;  // of the multiprocessor's rate, where it is full
};
StepCost step_cost(const GemmTileShape& shape) {
    const double loads = shape.outputs == 64 ? 1.0 : shape.outputs == 32 ? 1.25 : 1.75;
    return {shape.outputs * loads + 8, static_cast<double>(shape.rows) * shape.columns / kProductsPerCycle * loads};
}

double tile_cycles(const GemmDevice& device, const GemmTileShape& shape, const GemmSize& size, int64_t parts,
                   int64_t terms_of_part, double extra_of_block) {
    const int64_t blocks = ceiling(size.rows, shape.rows) * ceiling(size.columns, shape.columns) * parts;
    const int64_t busiest = ceiling(blocks, device.multiprocessors);
    const StepCost step = step_cost(shape);
    const double steps = static_cast<double>(terms_of_part);
    return std::max(steps * step.block + extra_of_block,
                    static_cast<double>(busiest) * (steps * step.share + extra_of_block));
}

// Parts of sums are written, read and added up by a second kernel.
double join_cycles(const GemmDevice& device, const GemmSize& size, int64_t parts) {
    const double bytes = static_cast<double>(gemm_partial_floats(size, parts)) * sizeof(float);
    return kLaunchCycles + 2 * bytes / (kMemoryBytesPerCycle * device.multiprocessors);
}

bool fits_split(const GemmSize& size, int64_t parts) {
    return parts > 1 && parts <= kMostParts &&
           gemm_partial_floats(size, parts) * static_cast<int64_t>(sizeof(float)) <= kMostPartial;
}

class Best {
  public:
    void offer(GemmWay way, double cycles) {
        if (cycles >= cycles_) return;
        cycles_ = cycles;
        way_ = way;
    }
    GemmWay way() const { return way_; }

  private:
    GemmWay way_;
    double cycles_ = std::numeric_limits<double>::infinity();
};

}  // namespace

GemmWay gemm_way(const GemmDevice& device, const GemmSize& size) {
    const int64_t parts = ceiling(size.depth, kGemmChain);
    Best best;
    for (const GemmTile tile : kGemmTiles) {
        const GemmTileShape shape = shape_of(tile);
        best.offer({tile, false}, tile_cycles(device, shape, size, 1, size.depth, 0));
        if (!fits_split(size, parts)) continue;
        best.offer({tile, true},
                   tile_cycles(device, shape, size, parts, kGemmChain, 0) + join_cycles(device, size, parts));
    }
    return best.way();
}

GemmWay gradient_way(const GemmDevice& device, int in, int out, const DenseFold::Root& root) {
    const GemmSize size{out, in, root.samples};
    Best best;
    for (const GemmTile tile : kGemmTiles) {
        const GemmTileShape shape = shape_of(tile);
        // A value in a register saves half of what would go to shared memory, the next one half of the rest.
        const double moved = root.kept > shape.registers ? root.chains / static_cast<double>(1 << shape.registers) : 0;
        const double waits = 2 * moved * shape.rows * shape.columns * sizeof(float) / kSharedBytesPerCycle;
        if (gemm_gradient_shared({tile, false}, root.kept) <= device.shared_bytes) {
            best.offer({tile, false}, tile_cycles(device, shape, size, 1, root.samples, waits));
        }
        if (!fits_split(size, root.chains)) continue;
        const int64_t longest = std::min<int64_t>(kGemmChain, ceiling(root.samples, root.chains) * 2);
        best.offer({tile, true},
                   tile_cycles(device, shape, size, root.chains, longest, 0) + join_cycles(device, size, root.chains));
    }
    return best.way();
}

DenseFold dense_fold(const FoldProgram& fold) {
    DenseFold made;
    std::vector<FoldLeaf> shards;
    bool begins = true;  // a root
    int waiting = 0;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        if (begins) {
            made.roots.push_back({static_cast<int>(made.leaves.size()), 0, 0, static_cast<int>(shards.size()), 0, 0});
        }
        DenseFold::Root& root = made.roots.back();
        for (int begin = leaf.begin; begin < leaf.end; begin += kGemmChain) {
            const int end = std::min(leaf.end, begin + kGemmChain);
            const int adds = (begin > leaf.begin ? 1 : 0) + (end == leaf.end ? leaf.adds : 0);
            made.leaves.push_back({begin, end, adds});
            ++root.chains;
            waiting -= adds;
            if (end < leaf.end || leaf.root < 0) root.kept = std::max(root.kept, ++waiting);
        }
        shards.push_back({leaf.begin, leaf.end, leaf.adds});
        ++root.shards;
        root.samples += leaf.end - leaf.begin;
        begins = leaf.root >= 0;
    }
    for (DenseFold::Root& root : made.roots) root.first_shard += static_cast<int>(made.leaves.size());
    made.leaves.insert(made.leaves.end(), shards.begin(), shards.end());
    return made;
}

}  // namespace lockstep
