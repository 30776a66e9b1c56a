// A static graph of layers over a Backend. Planned once for each pattern of local shard sizes, then run without
// allocating.
//
// Convolutional prefix depth-first by shard (activations stay in cache; each shard's gradients are leaves added by the
// fold program), dense suffix on all local rows at once (its weight-gradient kernels fold shards in registers).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.hpp"
#include "backend/step_graphs.hpp"
#include "comm/communicator.hpp"
#include "core/canonical_tree.hpp"
#include "core/function_ref.hpp"
#include "nn/loss.hpp"
#include "nn/model_spec.hpp"
#include "nn/parameters.hpp"

namespace lockstep {

struct Model;

/// The local rows of one step, as the loader gives them.
struct NetworkInput {
    int64_t epoch = 0;
    int rows = 0;
    const float* pixels = nullptr;
    const int32_t* labels = nullptr;
    const int64_t* positions = nullptr;
    float loss_scale = 1;  // a power of two that the gradients are multiplied by; the loss is not
    bool alone = false;    // the shards are all there are: nothing is exchanged with other ranks
};

/// Where the lead of a flat gradient holds what rides along (see ReduceLayout): floats before the first gradient
/// element.
inline constexpr int64_t kLead = 16;
inline constexpr int64_t kLeadLoss = 0;  // sum of the samples' losses
inline constexpr int64_t kLeadStop = 1;  // ranks that were asked to stop

class Network {
  public:
    /// Builds the graph. Throws kUsage for a model that the shapes do not allow (lenet on 2x2 …), naming the layer.
    /// A training step takes its rows in passes of whole shards with at most `most_rows` samples, or of one shard; 0:
    /// all at once. The passes change no bit.
    /// With `graphs` the work of a pass is one of them: `ready` is then called for all of it when it is queued.
    /// `comm`: the ranks that hold the other shards, with whom batch norm exchanges moments (shards_of_rank); null:
    /// there are none.
    Network(const ModelSpec& spec, Backend& backend, int64_t most_rows = 0, StepGraphs* graphs = nullptr,
            Communicator* comm = nullptr);
    /// Of a model that is no zoo's.
    Network(Model model, Backend& backend, int64_t most_rows = 0, StepGraphs* graphs = nullptr,
            Communicator* comm = nullptr);
    ~Network();

    const ParameterTable& parameters() const;
    /// One line a layer: name, output shape, parameters ("conv1  28x28x32  832"); for `inspect` and `plan`.
    std::string summary() const;

    /// Forward, loss and backward over local shards `range` of `shards` with `sizes` samples (all V entries). Root i of
    /// the fold program gets its flat sum in partial[i] (pointer to the lead: [kLead | flat elements]; lead zeroed by
    /// the caller, loss written here). `weights`: flat. `ready(first)` is called as gradient elements [first, flat)
    /// become final in all partials, last layer first, in the last pass. The first call of a rank with rows has first =
    /// flat elements: only the loss is final then. `pass_done` is called after every other pass.
    void train_step(
        const NetworkInput& input, int shards, ShardRange range, std::span<const int64_t> sizes, const float* weights,
        std::span<float* const> partial, FunctionRef<void(int64_t first)> ready, FunctionRef<void()> pass_done = [] {});

    /// Whether what the last train_step left in `partial` can hold no infinity and no NaN, nor can any sum of it, known
    /// without reading it. False where that is not known for sure, or not worth finding out.
    bool sums_surely_finite() const;

    /// After a step that changes the weights, before the next one: running values go on by the moments of its whole
    /// batch. Collective where there is batch norm, else nothing.
    void update_running(float* weights);
    bool has_batch_norm() const;
    /// Whether the shards of all ranks meet in the middle of a step (batch norm with scope global): then a rank's rows
    /// must fit in one pass, and train_step and update_running are collective even for a rank without rows.
    bool meets_in_step() const;
    /// Seconds that this rank has spent so far in what batch norm exchanges: waiting for others, not its own work.
    double seconds_waiting() const;
    /// Throws kUsage where they meet and these shards do not fit in one pass.
    void check_passes(int shards, ShardRange range, std::span<const int64_t> sizes) const;

    /// Evaluation mode (no dropout): logits [rows][outputs] of any number of rows. The buffer is valid until the next
    /// call of this or of train_step: both work in the same memory.
    const float* logits(const float* pixels, int rows, const float* weights);
    /// The same of consecutive shards of these sizes. Where a vendor's library computes, its bits may depend on how
    /// many rows it is given at once; so it is given a shard's, which are the same on whichever rank.
    const float* logits(const float* pixels, std::span<const int64_t> sizes, const float* weights);

    /// Of a row: one for each class, or one.
    int outputs() const;
    const LossSpec& loss() const;
    int classes() const;  // 0: a regression
    /// As given; 0 = all rows at once.
    int64_t most_rows() const;

    /// Bytes of the arena that a pass needs: a training step of these shards, an evaluation of shards of these
    /// sizes.
    int64_t training_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const;
    /// Bytes beside the arena that sums of passes need until they are added to others.
    int64_t pass_sum_bytes(int shards, ShardRange range, std::span<const int64_t> sizes) const;
    int64_t evaluation_bytes(std::span<const int64_t> sizes) const;
    /// Bytes beside the arena for the moments of batch norm, of rank `rank` of `world`.
    int64_t norm_bytes(int shards, int rank, int world, std::span<const int64_t> sizes) const;
    /// Floats that it sends of them in a step.
    int64_t norm_floats_sent(int shards, int rank, int world, std::span<const int64_t> sizes) const;
    /// What the passes so far made of it: the largest of their needs.
    int64_t arena_bytes() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace lockstep
