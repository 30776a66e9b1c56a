// What to say when a step's loss or gradient is not finite: the failed step is replayed, first shard by shard, then
// sample by sample, with the weights that it started from.
#pragma once

#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "data/loader.hpp"
#include "nn/network.hpp"

namespace lockstep {

struct ReplayContext {
    Communicator& comm;
    Backend& backend;
    Network& network;
    const float* weights;  // flat, not updated by the failed step
    const Batch& batch;    // of this rank
    NetworkInput input;    // its rows on the device
    ShardRange local;
    int64_t sample_elements;  // of the data set's shape
    float* scratch;           // [kLead | flat elements]
};

/// One message naming step, shards and sample positions. Collective; the same text on all ranks.
std::string explain_nonfinite(const ReplayContext& context);

}  // namespace lockstep
