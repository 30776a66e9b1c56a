// The replica check: do all ranks still hold the same weights (and, before a checkpoint, the same optimizer state)? By
// the arithmetic they must, so a difference is a fault of a machine. Where ranks differ, the ones in doubt are named
// with the first element that differs; which of them is right cannot be told: a flipped bit enters the gradient of the
// next step, and with it the weights of all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "train/events.hpp"
#include "train/replica_hash.hpp"

namespace lockstep {

/// Who holds something else, from the ranks' hashes alone.
struct ReplicaGroups {
    std::vector<int> in_doubt;  // ascending: the ranks outside the largest group, or all where two groups are largest
    int reference = 0;          // the first rank of a largest group: the others are compared with it
    int other = 0;              // the first rank that differs from the reference: compared with those that equal it
};
ReplicaGroups group_replicas(std::span<const uint64_t> hash_of_rank);

/// What is found at a rank in doubt, beside the rank that it is compared with.
struct ReplicaDifference {
    int rank = 0, other = 0;
    std::string host, device;           // of `rank`
    std::string element;                // the first that differs, as the files have it: "fc1.weight[3, 17]"
    uint32_t bits = 0, other_bits = 0;  // of the two fp32 values; equal where the memory has healed since it was hashed
    /// "rank 2 on node7 (cpu avx512, 1 thread) has fc1.weight[3, 17] = 0.5 (0x3f000000), rank 0 has 0.25 (0x3e800000)"
    std::string text() const;
};

class ReplicaCheck {
  public:
    ReplicaCheck(Communicator& comm, Backend& backend, const ParameterTable& parameters, const float* weights,
                 const std::vector<Update::Slot>& slots);

    /// Compares the weights of all ranks, with `state` the optimizer state, too. Empty where all agree, else one entry
    /// for each rank in doubt, the same on every rank. Collective.
    std::vector<ReplicaDifference> compare(bool state);
    /// The same after `step`, written down as a check event; where ranks differ, throws SharedError(kMismatch) on all,
    /// naming the ranks in doubt and the checkpoint to go on from (rank 0's word holds; "" = there is none).
    void require_equal(int64_t step, bool state, EventsLog& events, const std::string& last_passed);
    /// Hash of the weights compared last; equal runs have equal ones.
    uint64_t hash() const { return hasher_.weights(); }

  private:
    std::vector<ReplicaDifference> find_differences(std::span<const uint64_t> hash_of_rank);
    ReplicaDifference look_into(std::size_t piece, int rank, int other);

    Communicator& comm_;
    Backend& backend_;
    ReplicaHasher hasher_;
};

}  // namespace lockstep
