#include "explain/worker_rules.hpp"

#include "core/error.hpp"

namespace lockstep {
namespace {

double rate_speed_of(const Facts& f) {
    return f.scheme->counting == Counting::kStretched ? 1.0 / f.question.workers : 1.0;
}

}  // namespace

WorkerRules lockstep_rules(const Facts& f) {
    WorkerRules rules;
    rules.workers = f.question.workers;
    rules.batch = f.question.batch / rules.workers;
    return rules;
}

WorkerRules scheme_rules(const Facts& f) {
    const Scheme& s = *f.scheme;
    WorkerRules rules = lockstep_rules(f);
    rules.batch = f.reading == Reading::kWhole ? f.worker_samples : f.worker_batch;
    rules.reading = f.reading;
    rules.wraps = s.wraps;
    rules.clips_locally = s.clips_locally;
    if (rules.workers == 1) return rules;
    rules.applying = s.applying;
    rules.stale = s.applying == Applying::kAsynchronously;
    rules.sum = s.sums || s.applying != Applying::kOnce;
    rules.own_statistics = f.question.batch_norm.value_or(false);
    rules.rate_speed = rate_speed_of(f);
    rules.rate_by_update = s.counting == Counting::kEveryWorker;
    return rules;
}

std::vector<Cause> causes_of(const Facts& f, const Config& config, std::vector<std::string>& idle) {
    const Scheme& s = *f.scheme;
    const int workers = f.question.workers;
    std::vector<Cause> causes;
    const auto add = [&](const char* name, std::string why, auto change) {
        Cause cause{name, std::move(why), lockstep_rules(f)};
        change(cause.rules);
        causes.push_back(std::move(cause));
    };
    const bool alone = workers == 1;
    // What a worker computes of its samples alone depends on which they are: a sampler deals them one by one.
    const bool sampled = f.reading == Reading::kPaddedParts || f.reading == Reading::kTrimmedParts;
    if (f.reading == Reading::kSameSamples) {
        add("shift ratio 0", "all workers read the same samples", [&](WorkerRules& r) {
            r.reading = Reading::kSameSamples;
            r.wraps = true;
        });
    } else if (f.reading == Reading::kWhole) {
        add("whole data per worker", fmt::format("each of {} workers goes over everything, one after another", workers),
            [&](WorkerRules& r) {
                r.batch = f.worker_samples;
                r.reading = Reading::kWhole;
                r.applying = Applying::kAsynchronously;
                r.sum = true;
            });
    } else if (f.theirs.duplicates > 0 || f.theirs.omitted > 0) {
        const bool twice = f.theirs.duplicates > 0;
        add(s.wraps ? "batches wrap"
            : twice ? "samples read twice"
                    : "samples left out",
            s.wraps ? "the last batch is filled from the next epoch"
            : twice ? "to make parts equal"
                    : "parts are cut to whole batches",
            [&](WorkerRules& r) {
                r.reading = f.reading;
                r.wraps = s.wraps;
            });
    }
    const bool in_turn = !alone && s.applying != Applying::kOnce && !s.batch_of_worker;
    if (!alone && (s.sums || in_turn)) {
        add("sum for mean", fmt::format("{} times the mean gradient", workers), [&](WorkerRules& r) { r.sum = true; });
    }
    if (in_turn && config.optimizer.name == "sgd") {
        idle.push_back("optimizer stepped W times: sgd keeps nothing between its steps");
    } else if (in_turn) {
        add("optimizer stepped W times",
            fmt::format("{} steps of {}, each with 1/{} of the mean gradient", workers, config.optimizer.name, workers),
            [&](WorkerRules& r) { r.applying = Applying::kInTurn; });
    }
    if (!alone && s.applying == Applying::kAsynchronously) {
        add("stale gradients", fmt::format("each of weights about {} updates old", workers - 1), [&](WorkerRules& r) {
            r.batch = f.question.batch;
            r.turns = true;
            r.applying = Applying::kAsynchronously;
            r.stale = true;
            r.sum = true;
        });
    }
    if (!alone && s.counting != Counting::kRight) {
        if (config.schedule.name == "constant" && config.schedule.warmup_epochs == 0) {
            idle.push_back("schedule by another count: the learning rate is constant");
        } else {
            const double speed = s.counting == Counting::kEveryWorker ? workers : rate_speed_of(f);
            add("schedule by another count", fmt::format("it goes on {:.4g} updates in one", speed),
                [&](WorkerRules& r) { r.rate_speed = speed; });
        }
    }
    if (s.clips_locally && (alone || config.optimizer.clip_norm <= 0)) {
        idle.push_back(alone ? "clipping on each worker: there is one"
                             : "clipping on each worker: optimizer.clip_norm is 0");
    } else if (s.clips_locally) {
        // Each worker's gradient by itself needs a pass by itself: its statistics are then of no more than its part.
        const bool apart = f.question.batch_norm.value_or(false) &&
                           (config.batch_norm.scope == "global" || config.batch.shards % workers != 0);
        add("clipping on each worker",
            apart ? "before the average, and batch norm over B/W with it" : "before the average", [&](WorkerRules& r) {
                r.clips_locally = true;
                r.interleaved = sampled;
            });
    }
    if (f.theirs.batch_norm_samples != f.ours.batch_norm_samples) {
        if (f.question.batch_norm.value_or(false)) {
            add("batch norm over B/W",
                fmt::format("statistics of {} samples{}", f.theirs.batch_norm_samples,
                            sampled ? fmt::format(" that are {} apart", workers) : ""),
                [&](WorkerRules& r) {
                    r.own_statistics = true;
                    r.interleaved = sampled;
                });
        } else {
            idle.push_back(fmt::format("batch norm over B/W: {} has none", config.model.name));
        }
    }
    return causes;
}

}  // namespace lockstep
