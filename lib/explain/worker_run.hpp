// Trains as W workers under other rules, in one process, with the trainer's own loader, network, update and evaluation:
// what differs from a run of `train` is the rules and nothing else. Under Lockstep's rules it gives the bits of
// `train`.
#pragma once

#include <optional>
#include <vector>

#include "config/config.hpp"
#include "data/dataset.hpp"
#include "explain/worker_rules.hpp"

namespace lockstep {

/// After an epoch (all of the epoch's samples read by those that read them).
struct EpochOutcome {
    int64_t epoch = 0;  // from 1
    double loss = 0;
    double accuracy = 0;  // NaN of a regression
};

struct RunOutcome {
    int64_t updates = 0;
    std::vector<EpochOutcome> epochs;  // those that were reached
    std::optional<int64_t> diverged;   // the update whose loss or gradient was not finite
    std::vector<float> weights;        // flat, at the end
};

/// Throws kUsage for a config that the rules cannot be tried on.
void check_rules(const WorkerRules& rules, const Config& config);

/// `data.test` is what is evaluated. Computes on the CPU. Checks the rules first.
RunOutcome train_under(const WorkerRules& rules, const Config& config, const DataSplits& data);

}  // namespace lockstep
