// Who looks into a step while it runs: hashes for `diff`, a time line, a planted fault. The engine calls its watchers
// at the borders between stages, in this order; with none it does nothing more. What a watcher sees lies on the device.
#pragma once

#include <cstdint>
#include <span>

#include "data/loader.hpp"

namespace lockstep {

struct StepOutcome;

class StepWatcher {
  public:
    virtual ~StepWatcher() = default;

    /// Before the batch is waited for.
    virtual void step_begins() {}
    /// This rank's rows are there.
    virtual void batch_read(const Batch& /*batch*/) {}
    /// Forward and loss are done; not called on a rank without rows.
    virtual void forward_done() {}
    /// Gradient elements [first, end) of this rank's own sums are final and have not left yet. partial[i]: maximal node
    /// i of this rank, [kLead | flat elements]; empty on a rank without rows. Called from the last elements to the
    /// first; at first = 0 backward is done.
    virtual void partials_final(int64_t /*first*/, int64_t /*end*/, std::span<float* const> /*partial*/) {}
    /// The total over all ranks, [kLead | flat elements], not yet divided.
    virtual void reduced(const Batch& /*batch*/, const float* /*total*/) {}
    /// The update is done; `weights` are flat and may be changed (planted faults do).
    virtual void updated(const StepOutcome& /*outcome*/, float* /*weights*/) {}
};

}  // namespace lockstep
