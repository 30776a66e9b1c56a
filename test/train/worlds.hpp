// A config trained with ranks as threads of this process: what every test of whole runs begins with.
#pragma once

#include <functional>
#include <string>

#include "config/config.hpp"
#include "train/trainer.hpp"

namespace lockstep::test {

/// What came out: equality of these two is equality of the run.
struct Outcome {
    std::string sha256;   // of model.safetensors
    std::string metrics;  // without wall
    bool operator==(const Outcome&) const = default;
};

std::string without_wall(const std::string& metrics);

/// Of one rank: threads, instruction set, a watcher, or something that spoils it.
using RankChange = std::function<void(LoadedConfig&, TrainOptions&, int rank)>;

/// What rank 0 returns of a run on `world` ranks. Quiet, in memory unless `options` say otherwise.
TrainResult train_world(const Config& config, const DataSplits& data, int world, const TrainOptions& options = {},
                        const RankChange& change = {});

/// The same as an outcome; of a run in memory.
Outcome outcome_on(const Config& config, const DataSplits& data, int world, const TrainOptions& options = {},
                   const RankChange& change = {});

/// Options of a run that starts from the checkpoint at `path`.
TrainOptions resumed_from(const std::string& path);

}  // namespace lockstep::test
