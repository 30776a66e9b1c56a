// What batch norm needs beyond a shard: the moments of the whole batch, for running values and, with scope global, for
// the statistics; with scope global the gradient sums of the whole batch, too. Shards leave theirs here; they are
// merged up the canonical tree, this rank's first, then all ranks' nodes on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "core/function_ref.hpp"
#include "nn/layer.hpp"
#include "nn/norm_program.hpp"

namespace lockstep {

class NormExchange {
  public:
    /// `comm`: the ranks that hold the other shards; null where there are none. Everything must outlive it.
    NormExchange(const std::vector<LayerSpec>& layers, Backend& backend, Communicator* comm);

    /// Whether the model has batch norms; whether ranks meet at them in the middle of a step.
    bool any() const { return elements_ > 0; }
    bool has_borders() const { return widest_border_ > 0; }
    /// Floats of a shard's statistics of all layers, and where a layer's begin.
    int64_t elements() const { return elements_; }
    int64_t offset(std::size_t layer) const { return offsets_[layer]; }

    /// A step begins. `alone`: no other rank takes part. The program lives until the next one.
    void begin(const NormProgram& program, bool alone);
    int64_t samples() const { return program_->samples; }
    /// Where this rank's shard number `leaf` of those that are not empty leaves its moments.
    float* moments(std::size_t layer, int leaf) { return moments_->floats() + leaf * elements_ + offsets_[layer]; }
    /// Where it leaves its gradient sums of the border that is passed.
    float* sums(int leaf) { return sums_->floats() + leaf * widest_border_; }

    /// All shards have left their moments of a border: then statistics() are there. Collective.
    void meet_forward(std::size_t layer);
    float* statistics(std::size_t layer) { return statistics_->floats() + offsets_[layer]; }
    /// All shards have left their sums: then total_sums() are there. Collective.
    void meet_backward(std::size_t layer);
    const float* total_sums() { return nodes_->floats(); }

    /// The step was applied: running values go on. Collective.
    void update_running(float* weights);

    /// Bytes on the device for a step of this program.
    int64_t bytes(const NormProgram& program) const;
    /// Floats that rank `rank` sends for it in a step.
    int64_t floats_sent(const NormProgram& program, int rank) const;
    /// That this rank has spent with the others' nodes, since construction: not its own work.
    double seconds_waiting() const { return seconds_waiting_; }

  private:
    using Merge = FunctionRef<void(const NodeMerge&, const float* left, const float* right, float* into)>;

    int64_t shape_positions(std::size_t layer) const;
    int channels(std::size_t layer) const { return layers_[layer].in.channels; }
    void merge_layer(std::size_t layer, const NodeMerge& nodes, const float* left, const float* right, float* into);
    /// `values`: of this rank's first shard, the others' `stride` floats apart. The total goes to the front of nodes_.
    void total(float* values, int64_t stride, int64_t count, Merge merge);
    void gather(int64_t count);
    void exchange(std::span<float> nodes);
    void copy(int64_t count, const float* from, float* to);

    const std::vector<LayerSpec>& layers_;
    Backend& backend_;
    Communicator* comm_;
    std::vector<std::size_t> norms_;  // the layers
    std::vector<int64_t> offsets_;    // of each layer
    int64_t elements_ = 0, widest_border_ = 0;
    const NormProgram* program_ = nullptr;
    bool alone_ = false;
    std::unique_ptr<Buffer> moments_, sums_;       // [leaf]
    std::unique_ptr<Buffer> totals_, statistics_;  // of borders
    std::unique_ptr<Buffer> nodes_, host_nodes_;   // [node of any rank]
    std::vector<int64_t> counts_;                  // floats of each rank in nodes_
    double seconds_waiting_ = 0;
};

}  // namespace lockstep
