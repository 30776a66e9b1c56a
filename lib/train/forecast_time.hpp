// How long a step's own work takes on this machine: measured, not guessed.
#pragma once

#include "config/config.hpp"
#include "data/dataset.hpp"
#include "train/forecast.hpp"

namespace lockstep {

/// Trains a few steps of the busiest rank of each world, alone and without messages, and notes the median in
/// step_seconds; machine and device in timed_on. About half a second a world where steps are short, else three steps.
void time_steps(const Config& config, const Dataset& data, Forecast& forecast);

}  // namespace lockstep
