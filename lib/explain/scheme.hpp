// The rules by which other trainers share a job between workers, as data: who reads what, how gradients become updates,
// what counts as a step. `explain` tells what follows from them (facts.hpp), tries them on a model of two weights
// (example.hpp) and trains under them (worker_run.hpp); all three read this one table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// What a worker reads in an epoch.
enum class Reading {
    kWhole,         // all of the data set, by itself
    kSameSamples,   // 1/W of it, but every worker the same: each starts at 0 (a shift ratio of 0)
    kShifted,       // 1/W of it from w/W on (the shift ratio that was meant)
    kDealt,         // its part of every batch that one pipeline deals
    kPaddedParts,   // its own part; parts are made equal by reading some samples twice
    kTrimmedParts,  // its own part, cut to whole batches; the rest is left out
};

/// How the workers' gradients change the weights.
enum class Applying {
    kOnce,            // added up or averaged, then one update
    kInTurn,          // all computed on the same weights, then one update each, on shared optimizer state
    kAsynchronously,  // one update each as they come, computed on the weights of W - 1 updates ago
};

/// How far the step counter, by which learning rates change, goes in a round of all workers.
enum class Counting {
    kRight,        // as one machine's
    kEveryWorker,  // + W, though each worker's step is a step of the schedule: it ends W times too soon
    kStretched,    // + 1, though the schedule was told of one worker's batches: it takes W times as long
};

struct Scheme {
    std::string_view name;    // "tf-distributed-replicated"
    std::string_view system;  // whose rules, in a few words
    Reading reading;
    Applying applying;
    Counting counting = Counting::kRight;
    bool sums = false;             // kOnce: adds the workers' mean gradients and does not divide
    bool towers_sum = false;       // adds the gradients of a worker's GPUs; else their mean
    bool batch_of_worker = false;  // the batch that people write is every worker's, not the job's
    bool clips_locally = false;    // each worker clips its own gradient, before the average
    bool wraps = false;            // no short last batch: it is filled from the next epoch

    /// The optimizer's steps that one round of W workers takes.
    int applications(int workers) const { return applying == Applying::kOnce ? 1 : workers; }
    /// A worker alone is one machine, whatever is said of several: it reads everything.
    Reading reading_of(int workers) const {
        return workers == 1 && reading != Reading::kTrimmedParts ? Reading::kDealt : reading;
    }
};

std::span<const Scheme> schemes();
/// Throws kUsage for an unknown name, with the nearest and all others.
const Scheme& scheme_named(std::string_view name);

}  // namespace lockstep
