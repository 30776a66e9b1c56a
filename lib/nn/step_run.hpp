// One pass over a network: a graph, a plan, the values of this step, and the arena they live in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/function_ref.hpp"
#include "nn/graph.hpp"
#include "nn/network.hpp"
#include "nn/norm_exchange.hpp"
#include "nn/step_plan.hpp"

namespace lockstep {

class StepRun {
  public:
    /// `norms`: where batch norm meets other blocks in training, from the rank's shard number `first_leaf` on.
    StepRun(const Graph& graph, const StepPlan& plan, std::byte* arena, const NetworkInput& input, const float* weights,
            NormExchange* norms = nullptr, int first_leaf = 0);

    /// The prefix block by block, each stream its range of blocks; then the suffix on all rows.
    /// `prepare`: the weights may have changed since the last pass.
    void forward(bool prepare);
    const float* logits() const;
    /// The samples' losses, their sums to the roots, and d loss / d logits, scaled.
    void loss();
    /// Last layer first. A layer's weight gradient follows its data gradient at once, so that its bucket leaves early.
    void backward_suffix(FunctionRef<void(int64_t first)> ready);
    /// Makes backward_suffix look at what its weight gradients are sums of, which is far less than they are where
    /// layers are large, and say whether none of them can have overflowed (surely_finite).
    void look_at_factors() { surely_finite_ = true; }
    bool surely_finite() const { return surely_finite_; }
    /// Block by block, each stream its range; a shard's gradients are leaves, added as the leaf program says.
    void backward_prefix();

  private:
    /// Layers of the prefix between two borders. Forward the first one may be a border, on the way back the last one
    /// (`resumes`): then what all blocks found is there.
    struct Segment {
        std::size_t begin, end;
        bool resumes = false;
    };
    void forward_segment(Segment segment);
    void backward_segment(Segment segment);
    void backward_block(Stream& stream, int r, Block block, Segment segment, float* leaf);
    /// Layer i's gradient to its inputs', for these rows; `leaf`: the block's.
    void backward_layer(std::size_t i, Stream& stream, Block block, int r, const float* leaf);
    void leave_moments(std::size_t border, Stream& stream, Block block, int r);
    void leave_sums(std::size_t border, Stream& stream, Block block, int r, float* leaf);
    void add(Stream& stream, SlotAdd operands, int64_t begin, int64_t end);
    bool factors_are_small(std::size_t i) const;
    bool is_border(std::size_t i) const { return i < model_.prefix && model_.layers[i].is_border(); }

    Block all_rows() const { return {0, input_.rows, 0}; }
    Pass pass(Stream& stream, Block block) const;
    /// Where layer i finds its values for a block on range r.
    LayerValues values(std::size_t i, Block block, int r) const;
    float* address(Place place, int64_t elements, int first_row, int r) const;

    float* floats(int64_t offset) const { return reinterpret_cast<float*>(arena_ + offset); }
    float* output_gradient(std::size_t i, Block block, int r) const {
        return address(memory_.back[i].dy, model_.layers[i].out.elements(), block.first, r);
    }
    float* slot(int number) const { return floats(plan_.leaf_slots + number * plan_.leaf_bytes); }

    const Graph& graph_;
    const Model& model_;
    const MemoryPlan& memory_;
    Backend& backend_;
    const StepPlan& plan_;
    std::byte* arena_;
    const NetworkInput& input_;
    const float* weights_;
    NormExchange* norms_;
    int first_leaf_;
    bool surely_finite_ = false;
};

}  // namespace lockstep
