// How long the ranks take to add up a gradient, canonically and as the transport does it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/data_facts.hpp"
#include "train/bench_job.hpp"

namespace lockstep {

struct ReduceRate {
    std::string algorithm;
    int64_t repetitions = 0;
    Spread seconds;          // of one reduction: until the last rank has its total
    int64_t bytes_sent = 0;  // of one reduction: the most of any rank, as are the messages
    int64_t messages = 0;
};

struct ReduceBench {
    std::string device;
    int world = 1;
    int64_t elements = 0;  // of the gradient
    std::vector<ReduceRate> rates;
};

/// Reduces a gradient of the size of the config's model, without any computing beside it, for about so many seconds
/// with each algorithm; the config's own comes first. Collective; the result is complete on every rank.
ReduceBench bench_reduce(Communicator& comm, const Config& config, const DataFacts& facts, double seconds);

}  // namespace lockstep
