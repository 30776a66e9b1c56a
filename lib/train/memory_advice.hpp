// Where a device is too small for a run: which batch.micro would fit, as the forecast of memory tells.
#pragma once

#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "core/function_ref.hpp"
#include "data/data_facts.hpp"

namespace lockstep {

/// "batch.micro = 64 would fit: …" or what else would help, for a device of so many bytes. No bit depends on it.
std::string memory_advice(const Config& config, const DataFacts& facts, int world, std::int64_t device_bytes);

/// Runs what allocates a run's memory. An OutOfMemory of the device is thrown on with the advice.
void with_memory_advice(const Config& config, int world, FunctionRef<void()> allocate);

}  // namespace lockstep
