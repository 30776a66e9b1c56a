// Which backend a rank uses, and how many threads: the one place that chooses.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace lockstep {

struct DeviceChoice {
    std::unique_ptr<Backend> backend;
    int threads = 1;
};

/// device.isa.
Isa isa_of(const std::string& name);

/// Threads of this rank with device.threads = 0. Collective.
int fair_threads(Communicator& comm);

/// device.threads = 0: the CPUs of this rank's affinity mask, shared fairly with the ranks of this host that have the
/// same mask. Collective.
DeviceChoice choose_device(Communicator& comm, const Config& config);

}  // namespace lockstep
