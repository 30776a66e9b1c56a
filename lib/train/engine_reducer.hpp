// The reducer of a training step: the config's algorithm and bucket sizes over a device's memory and additions. The one
// place that makes it, for the step and for the benchmark of it.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.hpp"
#include "comm/reducer.hpp"
#include "config/config.hpp"

namespace lockstep {

/// Adds on the backend's queue of communication.
Adder device_adder(Backend& backend);
/// Where kernels and messages of the backend find it.
ScratchMaker device_scratch(Backend& backend);

/// Of a flat gradient of so many elements, on `comm`, which carries what lies on the backend's device. Both outlive it.
std::unique_ptr<Reducer> make_engine_reducer(Communicator& comm, const Config& config, int64_t elements,
                                             Backend& backend);

}  // namespace lockstep
