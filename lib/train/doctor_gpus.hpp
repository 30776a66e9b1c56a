// What `env` knows of GPUs: which each rank would take, what carries sums between them, and the versions behind them;
// or why there is none to use.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "cuda/plugin.hpp"

namespace lockstep {

struct GpuReport {
    bool looked = false;  // the host looks as if it had a GPU, or the config wants one
    bool needed = false;  // without one the rank would not start
    std::string fault;    // why none can be used
    std::string backend;  // device.backend
    std::string transport;
    CudaVersions versions;
    std::vector<GpuFacts> gpus;  // that this process sees
};

/// Loads the CUDA library where there may be a GPU. Never throws for what it finds.
GpuReport look_at_gpus(const Config& config);

void to_json(nlohmann::json& json, const GpuReport& report);
void from_json(const nlohmann::json& json, GpuReport& report);

}  // namespace lockstep
