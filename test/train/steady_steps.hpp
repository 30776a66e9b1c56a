// Counts what training steps allocate. Replaces operator new (support/allocation_counter.hpp): include it in exactly
// one source file of a test executable.
#pragma once

#include "backend/cpu/cpu_backend.hpp"
#include "comm/communicator.hpp"
#include "support/allocation_counter.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"

namespace lockstep::test {

/// Allocations by this process, reader threads included, in steps (first, last].
inline int64_t allocations_of_steps(Communicator& comm, const Job& job, const Cast& cast, int64_t first, int64_t last) {
    Config config = config_of(job).config;
    config.train.steps = last;
    config.reduce.bucket_kib = cast.bucket_kib;
    const DataSplits data = open_data(config);
    const RunPlan plan = make_run_plan(config, data.train->size());
    const auto backend = make_cpu_backend({Isa::kAuto, static_cast<int>(cast.threads[0])});
    TrainOptions options;
    options.stop_requested = [] { return false; };
    StepEngine engine(comm, *backend, config, plan, *data.train, options);
    engine.restore({});
    for (int64_t u = 0; u < first; ++u) engine.step();
    const AllocationCounter counter;
    for (int64_t u = first; u < last; ++u) engine.step();
    return counter.count();
}

/// 8 steps an epoch, dropout and clipping.
inline Job steady_job(const std::string& model, const std::string& optimizer) {
    Job job;
    job.model = model;
    job.optimizer = optimizer;
    job.samples = 384;
    job.batch = 48;
    job.dropout = 0.25;
    job.clip_norm = 1;
    return job;
}

}  // namespace lockstep::test
