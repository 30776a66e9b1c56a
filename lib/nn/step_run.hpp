// One pass over a network: a graph, a plan, the values of this step, and the arena they live in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/function_ref.hpp"
#include "nn/graph.hpp"
#include "nn/network.hpp"
#include "nn/step_plan.hpp"

namespace lockstep {

class StepRun {
  public:
    StepRun(const Graph& graph, const StepPlan& plan, std::byte* arena, const NetworkInput& input,
            const float* weights);

    /// The prefix block by block, each stream its range of blocks; then the suffix on all rows.
    /// `prepare`: the weights may have changed since the last pass.
    void forward(bool prepare);
    const float* logits() const;
    /// The samples' losses, their sums to the roots, and d loss / d logits, scaled.
    void loss();
    /// Last layer first. A layer's weight gradient follows its data gradient at once, so that its bucket leaves early.
    void backward_suffix(FunctionRef<void(int64_t first)> ready);
    /// Block by block, each stream its range; a shard's gradients are leaves, added as the leaf program says.
    void backward_prefix();

  private:
    void forward_prefix();
    void backward_block(Stream& stream, int r, Block block, float* leaf);
    /// Layer i's gradient to its inputs', for these rows.
    void backward_layer(std::size_t i, Stream& stream, Block block, int r);
    void add(Stream& stream, SlotAdd operands);

    Block all_rows() const { return {0, input_.rows}; }
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
};

}  // namespace lockstep
