// Which backend a rank uses, and how many threads: the one place that chooses.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace lockstep {

struct DeviceChoice {
    std::unique_ptr<Backend> backend;
    int threads = 1;
};

/// device.threads = 0: the CPUs of this rank's affinity mask, shared fairly with the ranks of this host that have the
/// same mask. Collective.
DeviceChoice choose_device(Communicator& comm, const Config& config);

}  // namespace lockstep
