// What tf_cnn_benchmarks' flags say of a job as a whole, for the halves of their translation.
#pragma once

#include <cstdint>
#include <string_view>

#include "explain/config_import.hpp"

namespace lockstep {

struct TfModel {
    std::string_view theirs;  // --model
    std::string_view ours;    // model.name
    int64_t side;             // of its pictures
    int64_t batch;            // if none is given
    double lr;                // if none is given; 0: a course of its own
    bool batch_norm;
};

struct TfJob {
    const TfModel* model = nullptr;
    bool cifar = false;  // the data
    int64_t samples = 0;
    int64_t gpus = 1;
    int64_t workers = 1;
    int64_t batch = 0;  // of all
};

/// Optimizer, L2, learning rates and their schedule.
void import_tf_optimizer(FlagList& flags, Imported& config, const TfJob& job);
void import_tf_rates(FlagList& flags, Imported& config, const TfJob& job);

}  // namespace lockstep
