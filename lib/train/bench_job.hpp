// What the benchmarks of this program share: a job as `train` starts it, but for a run directory, and how long things
// took. They measure the trainer's own stages; none of them is written a second time here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/function_ref.hpp"
#include "data/dataset.hpp"
#include "train/device.hpp"
#include "train/settings.hpp"

namespace lockstep {

/// Seconds of something that was done several times.
struct Spread {
    double median = 0;
    double least = 0;
    double most = 0;
};
/// Of at least one.
Spread spread_of(std::vector<double> seconds);

/// What a rank tells the others: doubles, those of rank r at [r]. Collective.
std::vector<std::vector<double>> gather_numbers(Communicator& comm, const std::vector<double>& own);

/// A config with its data opened, checked to be the same on all ranks, and the device of this rank.
struct BenchJob {
    LoadedConfig loaded;
    DataSplits data;
    std::optional<RunPlan> plan;  // its steps never end
    DeviceChoice device;

    const Config& config() const { return loaded.config; }
};

/// Throws what `train` would, on all ranks alike. Collective.
BenchJob open_bench_job(Communicator& comm, LoadedConfig loaded);

/// Does `work`, and tells the others of this rank's own failure while what messages under way point to still exists.
void announcing_failure(Communicator& comm, FunctionRef<void()> work);

}  // namespace lockstep
