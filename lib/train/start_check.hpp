// Before the first step: all ranks must hold the same config (but for keys that cannot change a bit), data, version and
// arithmetic. An unequal start is refused, naming the rank, the key, both values and where each came from.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace lockstep {

struct StartFacts {
    std::string version;
    std::string arithmetic;  // numeric fingerprint, once there is a device
    std::string train_data;  // fingerprints
    std::string test_data;
    std::string weights = {};  // of the file of model.weights, which rank 0 reads
};

/// Collective; throws SharedError: kUsage for a differing key, version or arithmetic, kData for differing data. Then
/// rank 0's values of the keys that hold for all (log, check, checkpoint, eval …) are copied into `loaded` on every
/// rank, with a warning for each that differed.
void check_equal_start(Communicator& comm, LoadedConfig& loaded, const StartFacts& facts);

/// Once every rank has its device: all must give the same bits. Collective; throws SharedError(kUsage), naming the rank
/// and both arithmetics.
void check_equal_arithmetic(Communicator& comm, const std::string& arithmetic);

}  // namespace lockstep
