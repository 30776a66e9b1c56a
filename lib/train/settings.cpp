#include "train/settings.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

/// "auto": mean squared error of a regression, one logit where that is usual, else softmax.
std::string loss_of(const Config& config, int classes) {
    if (config.train.loss != "auto") return config.train.loss;
    if (classes == 0) return "mse";
    const bool one_logit = config.model.name == "logistic" || config.model.name == "wide_deep";
    return one_logit && classes == 2 ? "sigmoid" : "softmax";
}

}  // namespace

int64_t RunPlan::samples_used(int64_t update) const {
    const int64_t epochs_done = update / steps_per_epoch;
    const int64_t steps = update % steps_per_epoch;
    // Only the last step of an epoch may be short, so the steps of an unfinished epoch are whole.
    return epochs_done * shards.samples_per_epoch() + steps * shards.batch();
}

int gradient_sums(const RunPlan& plan, ShardRange local) {
    return std::max(1, static_cast<int>(maximal_nodes(plan.shards.shards(), local).size()));
}

RunPlan make_run_plan(const Config& config, int64_t samples) {
    const ShardPlan shards(samples, config.batch.size, static_cast<int>(config.batch.shards),
                           config.batch.layout == "epoch" ? Layout::kEpoch : Layout::kBatch,
                           config.batch.last == "drop" ? LastBatch::kDrop : LastBatch::kKeep);
    const int64_t per_epoch = shards.steps_per_epoch();
    const int64_t total = config.train.steps ? *config.train.steps : config.train.epochs.value_or(0) * per_epoch;
    const RunPlan plan{shards, per_epoch, total, (total + per_epoch - 1) / per_epoch};
    static_cast<void>(Schedule(schedule_spec(config, plan)));  // refuses rates that fp32 cannot hold, before any work
    return plan;
}

ModelSpec model_spec(const Config& config, SampleShape shape, int classes, std::vector<Column> columns) {
    ModelSpec spec;
    spec.name = config.model.name;
    spec.flavor = config.model.flavor;
    spec.hidden = config.model.hidden;
    spec.channels = config.model.channels;
    spec.dropout = config.model.dropout;
    spec.input = shape;
    spec.classes = classes;
    spec.seed = static_cast<uint64_t>(config.seed);
    spec.loss = loss_of(config, classes);
    spec.label_smoothing = config.train.label_smoothing;
    spec.global_norm = config.batch_norm.scope == "global";
    spec.norm_momentum = config.batch_norm.momentum;
    spec.norm_epsilon = config.batch_norm.epsilon;
    spec.norm_unbiased = config.batch_norm.unbiased;
    spec.columns = std::move(columns);
    spec.layers = config.model.layers;
    return spec;
}

std::vector<UpdateTensor> update_tensors(const ParameterTable& parameters) {
    std::vector<UpdateTensor> tensors;
    for (const Parameter& p : parameters.all()) tensors.push_back({p.offset, p.count, p.is_weight(), p.file_columns()});
    return tensors;
}

OptimizerSpec optimizer_spec(const Config& config) {
    const auto& from = config.optimizer;
    OptimizerSpec spec;
    spec.name = from.name;
    spec.momentum = from.momentum;
    spec.beta1 = from.beta1;
    spec.beta2 = from.beta2;
    spec.rho = from.rho;
    spec.epsilon = from.epsilon;
    spec.epsilon_inside = from.epsilon_inside;
    spec.rmsprop_momentum = from.rmsprop_momentum;
    spec.initial = from.initial;
    spec.trust = from.trust;
    spec.weight_decay = from.weight_decay;
    spec.l2 = from.l2;
    spec.clip_norm = from.clip_norm;
    spec.decay = from.decay;
    spec.average = config.reduce.op == "average";
    spec.report_norm = config.log.grad_norm || from.clip_norm > 0;
    return spec;
}

ScheduleSpec schedule_spec(const Config& config, const RunPlan& plan) {
    ScheduleSpec spec;
    spec.name = config.schedule.name;
    spec.lr = config.optimizer.lr;
    spec.warmup_epochs = config.schedule.warmup_epochs;
    spec.every_epochs = config.schedule.every_epochs;
    spec.factor = config.schedule.factor;
    spec.end = config.schedule.end;
    spec.power = config.schedule.power;
    spec.rate = config.schedule.rate;
    spec.staircase = config.schedule.staircase;
    spec.min_lr = config.schedule.min_lr;
    spec.boundaries = config.schedule.boundaries;
    spec.values = config.schedule.values;
    spec.batch = plan.shards.batch();
    spec.samples_per_epoch = plan.shards.samples_per_epoch();
    spec.steps_per_epoch = plan.steps_per_epoch;
    spec.total_steps = plan.total_steps;
    return spec;
}

LoaderOptions training_loader_options(const Config& config, const RunPlan& plan, ShardRange local,
                                      int64_t first_update) {
    LoaderOptions options;
    options.seed = static_cast<uint64_t>(config.seed);
    options.shuffle = config.data.shuffle == "none"    ? Shuffle::kNone
                      : config.data.shuffle == "block" ? Shuffle::kBlock
                                                       : Shuffle::kFull;
    options.block = config.data.block;
    options.local = local;
    options.first_update = first_update;
    options.last_update = plan.total_steps;
    options.threads = input_threads(config);
    options.augmentation = augmentation_spec(config);
    return options;
}

// More than half of the cores would take from the kernels what they give to the decoders.
int input_threads(const Config& config) {
    if (config.device.input_threads > 0) return static_cast<int>(config.device.input_threads);
    const bool decodes = config.data.format == "image_folder" || config.data.format == "tfrecord";
    return decodes ? std::clamp(available_cpus() / 2, 1, 8) : 1;
}

ShardPlan evaluation_plan(const Config& config, int64_t samples) {
    return {samples, config.batch.size, static_cast<int>(config.batch.shards), Layout::kBatch, LastBatch::kKeep};
}

}  // namespace lockstep
