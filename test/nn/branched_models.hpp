// Small networks with branches and batch norm, and a training step of a world whose ranks are threads.
#pragma once

#include <string>
#include <vector>

#include "nn/network_fixture.hpp"
#include "nn/zoo.hpp"

namespace lockstep {

struct NamedModel {
    std::string name;
    ModelSpec spec;
    Model model;
};

/// Two residual blocks, one of them with a projection; scope shard and global.
NamedModel residual_model(bool global);
/// Those, then one with every kind of layer that joins or normalises and an output with three readers; a dense one.
std::vector<NamedModel> branched_models();

/// What a step leaves.
struct WorldResult {
    StepSums sums;
    std::vector<float> weights;  // with running values gone on, of rank 0
    bool replicas_equal = true;  // of the weights of all ranks
};

struct WorldCast {
    int world = 1;
    int threads = 1;
    int64_t micro = 0;
    bool exchange = true;  // else every rank's batch norm knows its own shards alone
};
WorldResult threaded_step(const Model& model, const Samples& samples, const std::vector<int64_t>& sizes,
                          const std::vector<float>& weights, const WorldCast& cast);

}  // namespace lockstep
