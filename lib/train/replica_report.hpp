// What the replica check says where ranks differ: to people, and in events.jsonl.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

/// What is found at a rank in doubt, in the first tensor in which it differs from the rank that it is compared with.
struct ReplicaDifference {
    int rank = 0, other = 0;
    std::string host, device;             // of `rank`
    std::string element;                  // the first that differs, as the files have it: "fc1.weight[3, 17]"
    uint32_t bits = 0, other_bits = 0;    // of the two fp32 values
    int64_t differing = 0, elements = 0;  // of the tensor; 0 differ where memory has healed since it was hashed
    /// "rank 2 on node7 (cpu avx512, 1 thread) has fc1.weight[3, 17] = 0.5 (0x3f000000), rank 0 has 0.25 (0x3e800000);
    /// 1 of 401408 elements differs"
    std::string text() const;
};

/// The line of a check event, passed where there are no differences. `hash`: of the weights.
nlohmann::ordered_json check_event(const std::vector<ReplicaDifference>& differences, int64_t step, bool state,
                                   uint64_t hash, const std::string& last_passed);

/// The error for people: a line for each of the first ranks in doubt, and what to go on from ("" = nothing).
std::string check_failure(const std::vector<ReplicaDifference>& differences, int64_t step,
                          const std::string& last_passed);

}  // namespace lockstep
