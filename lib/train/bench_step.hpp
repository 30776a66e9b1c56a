// How long a training step takes, and what of it each stage takes on each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/bench_job.hpp"

namespace lockstep {

/// Seconds of a step, stage by stage.
struct StepStages {
    double input = 0;  // waiting for samples
    double forward = 0;
    double backward = 0;
    double reduce = 0;  // what is left of it once backward is done
    double update = 0;
    double total() const { return input + forward + backward + reduce + update; }
};

struct RankStages {
    std::string host;
    int threads = 1;
    int64_t samples = 0;  // of a step, in the mean
    StepStages stages;    // in the mean
};

struct StepBench {
    std::string device;
    int64_t steps = 0;  // that were measured
    Spread seconds;     // of a step, on rank 0; the others keep its pace
    double samples_per_s = 0;
    std::vector<RankStages> ranks;
};

/// Trains on the job's own data for about so many seconds, three steps at least, after some that are not counted: those
/// plan, touch memory, and use up what was read ahead. Collective; the result is complete on every rank.
StepBench bench_step(Communicator& comm, BenchJob& job, double seconds);

}  // namespace lockstep
