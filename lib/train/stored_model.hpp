// A trained model as it lies on disk: weights, the config that made them, and how far training had come. What eval,
// predict and export start from. Rank 0 alone reads; the others get it from rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/function_ref.hpp"
#include "data/dataset.hpp"

namespace lockstep {

struct StoredModel {
    Config config;
    std::vector<std::byte> model;  // safetensors
    std::string where;             // of that file
    int64_t step = 0;              // updates behind it
    std::string train_data;        // fingerprint of what it was trained on; empty where no checkpoint tells
};

/// Of a run directory: the final model, or the newest checkpoint's of an unfinished run; its config with `overrides`
/// ("device.threads=2") on top. kUsage for a folder that holds no run or no weights yet.
StoredModel read_run(const std::string& directory, const std::vector<std::string>& overrides);

/// Of a checkpoint, or of the one beside it that a file names ("latest", "best"), with the config given (its data may
/// lie elsewhere).
StoredModel read_from_checkpoint(const std::string& path, const Config& config);

/// Throws kUsage where the format learns columns or classes from the training data, and those are not the ones that the
/// model was trained on: its outputs would be read as others.
void check_learned_from(const StoredModel& stored, const Dataset& train);

/// Runs `read` on rank 0 and hands what it returned to all ranks. Collective; errors are SharedErrors.
StoredModel read_on_first(Communicator& comm, FunctionRef<StoredModel()> read);

}  // namespace lockstep
