// What lies between the hosts of a job, measured in about two seconds: latency, bandwidth and clock difference of each
// host against rank 0's, and all-reduces of all ranks through the reducer that training uses.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

/// From rank 0 to the first rank of another host.
struct LinkFacts {
    int rank = 0;
    std::string host;
    double latency_s = 0;       // one way: half the median round trip of 8 bytes
    double bytes_per_s = 0;     // one way at a time, the best of some round trips
    double clock_offset_s = 0;  // its clock minus rank 0's
    double clock_error_s = 0;   // of that: half the fastest round trip
};

struct ReduceTime {
    int64_t bytes = 0;
    double seconds = 0;  // of one all-reduce, on the slowest rank
};

struct NetworkFacts {
    std::vector<LinkFacts> links;
    std::vector<ReduceTime> all_reduce;  // empty with one rank
    bool sums_right = true;
};

/// `hosts`: of every rank, the same everywhere. Links are known to rank 0 alone. Collective.
NetworkFacts measure_network(Communicator& comm, const std::vector<std::string>& hosts);

void to_json(nlohmann::json& json, const NetworkFacts& facts);

}  // namespace lockstep
