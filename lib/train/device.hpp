// Which backend a rank uses, and how many threads: the one place that chooses.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "backend/step_graphs.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace lockstep {

struct DeviceChoice {
    std::unique_ptr<Backend> backend;
    int threads = 1;
    /// What carries sums between ranks where they lie on a device; null: the job's own communicator does. It ends
    /// before the backend whose memory it works on.
    std::unique_ptr<Communicator> exchange;
    /// Of the backend, before which they end; null: none.
    std::unique_ptr<StepGraphs> graphs;
};

/// While an error unwinds, the exchange of a device ends before what computed on it: what it has queued may wait for
/// ranks that never come, and the device gives no memory back until all that is queued has ended. To be made after
/// both.
class ExchangeEndsFirst {
  public:
    explicit ExchangeEndsFirst(DeviceChoice& device) : device_(device) {}
    ExchangeEndsFirst(const ExchangeEndsFirst&) = delete;
    ExchangeEndsFirst& operator=(const ExchangeEndsFirst&) = delete;
    ~ExchangeEndsFirst() {
        if (std::uncaught_exceptions() > unwinding_) device_.exchange.reset();
    }

  private:
    DeviceChoice& device_;
    int unwinding_ = std::uncaught_exceptions();
};

/// device.isa.
Isa isa_of(const std::string& name);

/// Threads of this rank with device.threads = 0. Collective.
int fair_threads(Communicator& comm);

/// The backend of this rank, a GPU or the CPU, and what carries sums between the ranks. device.threads = 0: the CPUs of
/// this rank's affinity mask, shared fairly with the ranks of this host that have the same mask. `warns`: says so where
/// two ranks share a GPU. What hinders a rank is thrown on all; kUsage where there is no GPU to use. Collective.
DeviceChoice choose_device(Communicator& comm, const Config& config, bool warns = true);

}  // namespace lockstep
