// Work that is the same in many steps, recorded once and then started as a whole, where a device can do that (CUDA
// graphs). It saves the host's time for each operation, and never changes a bit.
#pragma once

#include <cstdint>
#include <span>

#include "core/function_ref.hpp"

namespace lockstep {

class StepGraphs {
  public:
    virtual ~StepGraphs() = default;
    /// Queues what `work` queues: on the backend's main stream, and on others between one for_each_range and its end.
    /// `key` holds all that the work depends on, addresses and numbers alike: of equal keys the work is equal, and
    /// `work` may not be called. It must not wait for the device, nor copy from or to the host.
    virtual void run(std::span<const uint64_t> key, FunctionRef<void()> work) = 0;
};

}  // namespace lockstep
