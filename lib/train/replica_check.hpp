// The replica check: do all ranks still hold the same weights (and, before a checkpoint, the same optimizer state)? By
// the arithmetic they must, so a difference is a fault of a machine. Where ranks differ, the ones in doubt are named
// with the first element that differs; which of them is right cannot be told: a flipped bit enters the gradient of the
// next step, and with it the weights of all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "nn/parameters.hpp"
#include "optim/update.hpp"
#include "train/events.hpp"
#include "train/replica_report.hpp"
#include "train/tensor_hash.hpp"

namespace lockstep {

/// Who holds something else, from the ranks' hashes alone.
struct ReplicaGroups {
    std::vector<int> in_doubt;  // ascending: the ranks outside the largest group, or all where two groups are largest
    int reference = 0;          // the first rank of a largest group: the others are compared with it
    int other = 0;              // the first rank that differs from the reference: compared with those that equal it
};
ReplicaGroups group_replicas(std::span<const uint64_t> hash_of_rank);

class ReplicaCheck {
  public:
    /// All lie on the device and outlive it.
    ReplicaCheck(Communicator& comm, Backend& backend, const ParameterTable& parameters, const float* weights,
                 const std::vector<Update::Slot>& slots);

    /// Compares the weights of all ranks, with `state` the optimizer's, too. Empty where all agree, else one entry
    /// for each rank in doubt, the same on every rank. Collective.
    std::vector<ReplicaDifference> compare(bool state);
    /// Of the weights compared last: a function of the values alone, so equal runs have equal ones.
    uint64_t hash() const { return hash_; }
    /// Compares after `step` and writes a check event; where ranks differ, throws SharedError(kMismatch) on all,
    /// naming the ranks in doubt and the checkpoint to go on from (rank 0's word holds; "" = there is none).
    void require_equal(int64_t step, bool state, EventsLog& events, const std::string& last_passed);

  private:
    struct Array {
        std::string prefix;  // "" or "momentum/", as in the files
        const float* values;
    };

    std::size_t tensors_before(std::size_t array) const;
    std::vector<ReplicaDifference> find_differences(std::span<const uint64_t> hash_of_rank,
                                                    std::span<const uint64_t> hashes);
    ReplicaDifference look_into(std::size_t tensor, int rank, int other);

    Communicator& comm_;
    Backend& backend_;
    const ParameterTable& parameters_;
    TensorHasher hasher_;
    std::vector<Array> arrays_;     // weights, then slots
    std::vector<uint64_t> hashes_;  // of the tensors, array by array
    uint64_t hash_ = 0;
};

}  // namespace lockstep
