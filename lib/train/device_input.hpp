// Where a batch lies for the device: where the loader put it, if the device sees the host's memory; else in device
// memory, of which there are two sets, so that the rows of the next step are copied while this one is computed.
#pragma once

#include <array>
#include <cstdint>

#include "backend/backend.hpp"
#include "data/loader.hpp"
#include "nn/network.hpp"
#include "train/host_view.hpp"

namespace lockstep {

class DeviceInput {
  public:
    /// `sample_elements`: of the data set's shape.
    DeviceInput(Backend& backend, int64_t sample_elements);

    /// Memory for a loader's batches: what can be copied to the device without waiting.
    LoaderOptions with_memory(LoaderOptions options) const;

    /// The rows of `batch`, for what is queued on the main stream from now on. Valid until the next call but one.
    NetworkInput rows(const Batch& batch);
    /// Begins to copy what rows() will be asked for next. Whatever used the rows before the last ones must have ended.
    /// On the communication stream: it has nothing to do before the first gradients are there.
    void copy_ahead(const Batch& batch);

  private:
    struct Set {
        explicit Set(Backend& backend) : pixels(backend), labels(backend), positions(backend) {}
        DeviceScratch pixels, labels, positions;
        NetworkInput input;
        const Batch* holds = nullptr;  // copied ahead
    };
    void copy(Set& set, const Batch& batch);

    Backend& backend_;
    int64_t sample_elements_;
    std::array<Set, 2> sets_;
    std::size_t turn_ = 0;  // the set of the last rows()
};

}  // namespace lockstep
