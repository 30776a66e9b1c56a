// How fast samples are read, and how fast a step uses them up: whether input or computing limits a job.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/bench_job.hpp"
#include "train/bench_step.hpp"

namespace lockstep {

struct InputRate {
    int threads = 1;  // of each rank's loader
    int64_t records = 0;
    double seconds = 0;
    double records_per_s = 0;  // of all ranks together
};

struct InputBench {
    int64_t records = 0;           // of the training split
    std::optional<int64_t> bytes;  // of its files; none where data are made
    SampleShape shape;
    std::vector<InputRate> rates;  // in the order asked for
    StepBench step;                // with samples that are there already
};

/// Reads the training split through the job's own loader: its batches, order and augmentation, with each of these
/// numbers of threads for about so many seconds, and nothing else at work. Then the same for steps whose samples lie in
/// memory. Collective; the result is complete on every rank.
InputBench bench_input(Communicator& comm, BenchJob& job, const std::vector<int>& threads, double seconds);

}  // namespace lockstep
