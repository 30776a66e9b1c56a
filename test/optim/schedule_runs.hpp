// Runs for tests of schedules: so many samples in batches of so many, for so many epochs.
#pragma once

#include "optim/schedule.hpp"

namespace lockstep::test {

/// N samples in batches of B, the last one kept, for E epochs.
inline ScheduleSpec run_of(const char* name, int64_t samples, int64_t batch, int64_t epochs) {
    ScheduleSpec spec;
    spec.name = name;
    spec.batch = batch;
    spec.samples_per_epoch = samples;
    spec.steps_per_epoch = (samples + batch - 1) / batch;
    spec.total_steps = epochs * spec.steps_per_epoch;
    return spec;
}

/// The same with the short last batch dropped.
inline ScheduleSpec dropping(ScheduleSpec spec, int64_t epochs) {
    spec.steps_per_epoch = spec.samples_per_epoch / spec.batch;
    spec.samples_per_epoch = spec.steps_per_epoch * spec.batch;
    spec.total_steps = epochs * spec.steps_per_epoch;
    return spec;
}

}  // namespace lockstep::test
