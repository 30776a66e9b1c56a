// From the config to what each stage needs: the one place where config keys meet the library's own types.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reducer.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "data/loader.hpp"
#include "data/shard_plan.hpp"
#include "nn/network.hpp"
#include "optim/schedule.hpp"
#include "optim/update.hpp"

namespace lockstep {

/// The length of a run and the batches of its epochs.
struct RunPlan {
    ShardPlan shards;
    int64_t steps_per_epoch;
    int64_t total_steps;
    int64_t epochs;  // begun: ceil(total_steps / steps_per_epoch)

    /// Samples used by the first `update` updates of the run.
    int64_t samples_used(int64_t update) const;
    bool ends_epoch(int64_t update) const { return update % steps_per_epoch == 0; }
};

/// Partial sums of the gradient that a rank with these shards holds: one for each maximal node, and one for the total
/// where it has none.
int gradient_sums(const RunPlan& plan, ShardRange local);

RunPlan make_run_plan(const Config& config, int64_t samples);

/// Of samples as the data have them; `columns`: of a table (Dataset::columns).
ModelSpec model_spec(const Config& config, SampleShape shape, int classes, std::vector<Column> columns);
std::vector<UpdateTensor> update_tensors(const ParameterTable& parameters);
OptimizerSpec optimizer_spec(const Config& config);
ScheduleSpec schedule_spec(const Config& config, const RunPlan& plan);
LoaderOptions training_loader_options(const Config& config, const RunPlan& plan, ShardRange local,
                                      int64_t first_update);
/// Threads that read samples ahead: device.input_threads, or what suits the format.
int input_threads(const Config& config);
/// The evaluation of a split: data order, pieces of B samples cut into V shards as in layout "batch".
ShardPlan evaluation_plan(const Config& config, int64_t samples);

}  // namespace lockstep
