#include "train/point.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/log.hpp"

namespace lockstep::test {

std::string Job::describe() const {
    return fmt::format(
        "{}{} {} {} {} {} {} shuffle={} clip={} wd={} l2={} warmup={} validation={} N={} B={} V={} steps={} classes={} "
        "seed={}{}",
        model, dropout > 0 ? fmt::format("+dropout {}", dropout) : "", optimizer, op, layout, last, schedule, shuffle,
        clip_norm, weight_decay, l2, warmup, validation, samples, batch, shards, steps, classes, seed,
        full_size ? " full" : "");
}

std::string Cast::describe() const {
    return fmt::format("world={} threads={} isa={} bucket_kib={} small_kib={}", world, fmt::join(threads, "/"),
                       fmt::join(isas, "/"), bucket_kib, small_kib);
}

namespace {

void set_optimizer(Config& c, const Job& job) {
    const bool own_scale = job.optimizer.starts_with("adam") || job.optimizer.starts_with("rmsprop") ||
                           job.optimizer == "lamb" || job.optimizer == "adagrad";
    c.optimizer.name = job.optimizer;
    c.optimizer.lr = own_scale ? 0.002 : job.op == "sum" ? 0.0005 : 0.05;
    c.optimizer.trust = 0.02;
    if (job.optimizer != "rmsprop_momentum") return;
    c.optimizer.name = "rmsprop";
    c.optimizer.rmsprop_momentum = 0.5;
    c.optimizer.epsilon_inside = true;
    c.optimizer.initial = 1;
}

/// Rates change within a run of few steps.
void set_schedule(Config& c, const Job& job) {
    c.schedule.name = job.schedule;
    c.schedule.every_epochs = 1;
    c.schedule.boundaries = {0.3, 0.9};
    c.schedule.values = {c.optimizer.lr, c.optimizer.lr / 2, c.optimizer.lr / 3};
    c.schedule.rate = 0.7;
    c.schedule.power = 1.5;
    if (job.schedule != "plateau") return;
    c.eval.every_epochs = 0;
    c.eval.every_steps = 2;
    c.schedule.patience = 1;
    c.schedule.factor = 0.5;
}

}  // namespace

LoadedConfig config_of(const Job& job) {
    LoadedConfig loaded;
    Config& c = loaded.config;
    c.seed = static_cast<int64_t>(job.seed);
    c.data.format = "synthetic";
    c.data.samples = job.samples;
    c.data.test_samples = 70;
    c.data.classes = job.classes;
    c.data.validation = job.validation;
    c.data.shuffle = job.shuffle;
    c.data.block = 64;
    c.model.name = job.model;
    c.model.dropout = job.dropout;
    if (job.full_size) {
        c.data.shape = {28, 28, 1};
    } else {
        c.data.shape = {12, 12, 1};
        c.model.hidden = {33, 17};
        c.model.channels = {3, 5};
    }
    c.batch.size = job.batch;
    c.batch.shards = job.shards;
    c.batch.layout = job.layout;
    c.batch.last = job.last;
    c.train.steps = job.steps;
    set_optimizer(c, job);
    c.optimizer.clip_norm = job.clip_norm;
    c.optimizer.weight_decay = job.weight_decay;
    c.optimizer.l2 = job.l2;
    set_schedule(c, job);
    c.schedule.warmup_epochs = job.warmup;
    c.reduce.op = job.op;
    c.log.every = 4;
    c.device.timeout_s = 300;
    return loaded;
}

std::vector<std::string> isas_here() {
    std::vector<std::string> names;
    for (const Isa isa : available_isas()) names.emplace_back(isa_name(isa));
    return names;
}

Outcome run(const Job& job, const Cast& cast, const Spoil& spoil) {
    set_log(LogLevel::kQuiet, false);
    const Config config = config_of(job).config;
    const DataSplits data = open_data(config);
    return outcome_on(config, data, cast.world, {}, [&](LoadedConfig& loaded, TrainOptions& options, int number) {
        const auto rank = static_cast<std::size_t>(number);
        loaded.config.device.threads = cast.threads[rank % cast.threads.size()];
        loaded.config.device.isa = cast.isas[rank % cast.isas.size()];
        loaded.config.reduce.bucket_kib = cast.bucket_kib;
        loaded.config.reduce.small_kib = cast.small_kib;
        if (spoil.change) spoil.change(loaded, options, number);
    });
}

}  // namespace lockstep::test
