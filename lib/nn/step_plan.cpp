#include "nn/step_plan.hpp"

#include <algorithm>

#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

constexpr int kEvaluationRows = 16;             // of the prefix at a time, where they stay in a cache
constexpr int64_t kNoCache = int64_t{1} << 40;  // piece_bytes() of a device that short pieces would leave idle
constexpr int64_t kPrefixWeights = 256 * 1024;  // bytes that may be read again for every piece

/// Hands out places in the arena, each on a border that the device likes.
class Layout {
  public:
    explicit Layout(std::size_t alignment) : alignment_(static_cast<int64_t>(alignment)) {}
    int64_t take(int64_t bytes) {
        const int64_t offset = end_;
        end_ += padded(bytes);
        return offset;
    }
    int64_t padded(int64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }
    int64_t end() const { return end_; }

  private:
    int64_t alignment_;
    int64_t end_ = 0;
};

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

/// Rows whose activations stay in the second-level cache from layer to layer; whole blocks where the weights would not
/// stay beside them.
int rows_of_piece(const Graph& graph, int block_rows) {
    int64_t elements = 1;
    for (std::size_t i = 0; i < graph.model.prefix; ++i) {
        const LayerSpec& layer = graph.model.layers[i];
        elements = std::max(elements, layer.in.elements() + layer.out.elements());
    }
    if (graph.leaf_elements * kFloat > kPrefixWeights) return std::max(1, block_rows);
    return static_cast<int>(std::clamp<int64_t>(graph.backend.piece_bytes() / (elements * kFloat), 1, 1 << 30));
}

void lay_out(StepPlan& plan, const Graph& graph, int64_t norm_elements) {
    const Model& model = graph.model;
    const MemoryPlan& memory = graph.memory(plan.training);
    const int64_t rows = plan.fold.rows;
    Layout layout(graph.backend.alignment());
    for (const int64_t elements : memory.kept_elements) plan.kept.push_back(layout.take(rows * elements * kFloat));
    for (std::size_t i = 0; i < model.prefix; ++i) plan.taps.push_back(layout.take(rows * model.layers[i].tap_bytes()));
    int block_rows = 0;
    for (const Block& block : plan.blocks) block_rows = std::max(block_rows, block.rows);
    plan.piece_rows = plan.training && graph.has_norms ? std::max(1, block_rows) : rows_of_piece(graph, block_rows);
    for (const int64_t elements : memory.transient_elements) {
        plan.transient_places.push_back(plan.transient_bytes);
        plan.transient_bytes += layout.padded(block_rows * elements * kFloat);
    }
    plan.transient = layout.take(static_cast<int64_t>(plan.ranges.size()) * plan.transient_bytes);
    if (plan.training) {
        for (const int64_t elements : memory.gradient_elements) {
            plan.gradient_arrays.push_back(layout.take(rows * elements * kFloat));
        }
        plan.statistics_bytes = layout.padded(norm_elements * kFloat);
        plan.statistics = layout.take(static_cast<int64_t>(plan.blocks.size()) * plan.statistics_bytes);
        plan.losses = layout.take(rows * kFloat);
        plan.leaf_bytes = layout.padded(graph.leaf_elements * kFloat);
        plan.leaf_slots = layout.take(plan.leaves.slots * plan.leaf_bytes);
    }
    plan.bytes = layout.end();
}

}  // namespace

Block StepPlan::piece(Block block, int which) const {
    const IndexRange rows = part_of(block.rows, which, pieces(block));
    return {block.first + static_cast<int>(rows.begin), static_cast<int>(rows.end - rows.begin), block.number};
}

bool StepPlan::equals(bool training_, const FoldProgram& fold_) const {
    const auto same = [](const FoldProgram::Leaf& a, const FoldProgram::Leaf& b) {  // whichever shards they are
        return a.begin == b.begin && a.end == b.end && a.adds == b.adds && a.root == b.root;
    };
    return training == training_ &&
           std::equal(fold.leaves.begin(), fold.leaves.end(), fold_.leaves.begin(), fold_.leaves.end(), same);
}

StepPlan plan_training(const Graph& graph, int shards, ShardRange range, std::span<const int64_t> sizes,
                       int64_t norm_elements) {
    StepPlan plan;
    plan.fold = fold_program(shards, range, sizes);
    plan.gradients.resize(plan.fold.roots.size());
    plan.loss_sums.resize(plan.fold.roots.size());
    if (graph.model.prefix > 0) {
        for (const FoldProgram::Leaf& leaf : plan.fold.leaves) {
            plan.blocks.push_back({leaf.begin, leaf.end - leaf.begin, static_cast<int>(plan.blocks.size())});
        }
        plan.ranges = graph.backend.split_items(static_cast<int>(plan.blocks.size()));
        if (graph.leaf_elements > 0) plan.leaves = leaf_program(shards, plan.fold, sizes, plan.ranges);
    }
    lay_out(plan, graph, norm_elements);
    return plan;
}

StepPlan plan_evaluation(const Graph& graph, std::span<const int64_t> sizes) {
    StepPlan plan;
    plan.training = false;
    const int shards = static_cast<int>(sizes.size());
    plan.fold = fold_program(shards, {0, shards}, sizes);
    if (graph.model.prefix > 0) {
        const bool whole = graph.backend.piece_bytes() >= kNoCache;
        for (const FoldProgram::Leaf& shard : plan.fold.leaves) {
            const int at_once = whole ? shard.end - shard.begin : kEvaluationRows;
            for (int first = shard.begin; first < shard.end; first += at_once) {
                plan.blocks.push_back(
                    {first, std::min(at_once, shard.end - first), static_cast<int>(plan.blocks.size())});
            }
        }
        plan.ranges = graph.backend.split_items(static_cast<int>(plan.blocks.size()));
    }
    lay_out(plan, graph, 0);
    return plan;
}

}  // namespace lockstep
