// The samples of this rank's shards, step after step, read ahead by threads of its own. What a batch holds depends on
// (seed, epoch, position) alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/canonical_tree.hpp"
#include "core/function_ref.hpp"
#include "data/augmentation.hpp"
#include "data/dataset.hpp"
#include "data/epoch_order.hpp"
#include "data/shard_plan.hpp"

namespace lockstep {

/// The local part of one global batch. Rows stand in shard order, within a shard in position order.
struct Batch {
    StepPosition at{};
    int64_t global_size = 0;             // b, over all ranks
    std::vector<int64_t> shard_sizes;    // of all V shards of the job
    int rows = 0;                        // local samples
    const float* pixels = nullptr;       // [rows][sample elements], 64-byte aligned
    const int32_t* labels = nullptr;     // [rows]
    const int64_t* positions = nullptr;  // [rows] place in the epoch's order
    const int64_t* indices = nullptr;    // [rows] place in the data set
};

struct LoaderOptions {
    uint64_t seed = 1;
    Shuffle shuffle = Shuffle::kFull;
    int64_t block = 1024;
    ShardRange local;                    // shards of this rank
    int64_t first_update = 1;            // 1-based: where to begin (resume)
    int64_t last_update = 0;             // the run's last
    int depth = 3;                       // batches read ahead
    int threads = 1;                     // 0 = read in next(), for tests
    AugmentationSpec augmentation = {};  // of training samples; by default none
    /// Where pixels, labels and positions are put: so many bytes, 64-byte aligned. Empty = ordinary memory; what copies
    /// them to a device wants memory that it can copy from by itself.
    std::function<std::shared_ptr<std::byte>(std::size_t)> memory = {};
};

class Loader {
  public:
    Loader(const Dataset& data, const ShardPlan& plan, const LoaderOptions& options);
    ~Loader();
    /// The next step's batch; valid until the next call. Allocates nothing once every buffer has been used. Rethrows
    /// what a reader threw. Calling it past last_update is an error of the caller. `waiting` is called once, and then
    /// every 100 ms for as long as the readers are not there yet.
    const Batch& next(FunctionRef<void()> waiting = [] {});
    /// The batch that next() will give, if it is there already, else null. It stays as it is until the call after that
    /// one.
    const Batch* ahead();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Bytes of the batch buffers of such a loader, for samples of so many elements.
int64_t loader_bytes(const ShardPlan& plan, const LoaderOptions& options, int64_t elements);

}  // namespace lockstep
