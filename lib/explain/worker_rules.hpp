// Rules of training for W logical workers of one process: those of a scheme, or Lockstep's own with one rule of the
// scheme in place of the right one, to see what that one alone does.
#pragma once

#include <string>
#include <vector>

#include "explain/facts.hpp"

namespace lockstep {

struct WorkerRules {
    int workers = 1;
    int64_t batch = 0;  // of a worker
    Reading reading = Reading::kDealt;
    bool wraps = false;        // no short last batch
    bool interleaved = false;  // kDealt: a worker's part of a batch is every W-th row of it, else rows in succession
    bool turns = false;        // a batch is of one worker, and each has every W-th one
    Applying applying = Applying::kOnce;
    bool stale = false;  // kAsynchronously: gradients are of the weights that the worker read last, else of now
    bool sum = false;    // of the workers' mean gradients (kInTurn: each updates with its own), else their mean
    bool clips_locally = false;
    bool own_statistics = false;  // batch norm over a worker's batch, else as the config says
    double rate_speed = 1;        // updates that the learning rate's schedule goes on by, in one of the job's
    bool rate_by_update = false;  // the schedule counts every worker's update

    /// The workers' gradients are needed one by one. Else their batches are computed as one.
    bool separate() const {
        return own_statistics || clips_locally || applying == Applying::kAsynchronously ||
               (applying == Applying::kInTurn && sum);
    }
};

/// Lockstep's own rules, by W workers: B / W samples each of every batch, one update.
WorkerRules lockstep_rules(const Facts& facts);
/// All of the scheme's.
WorkerRules scheme_rules(const Facts& facts);

/// One rule of a scheme that is not Lockstep's.
struct Cause {
    std::string name;
    std::string why;
    WorkerRules rules;  // Lockstep's but for this one
};
/// Those of the scheme that can matter for this job; `idle` gets those that cannot, and why.
std::vector<Cause> causes_of(const Facts& facts, const Config& config, std::vector<std::string>& idle);

}  // namespace lockstep
