// Hashes of what every rank must hold alike: weights and optimizer state, cut into pieces of one tensor each, so that a
// difference can be narrowed down to a few thousand elements before any value is sent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "nn/parameters.hpp"
#include "optim/update.hpp"

namespace lockstep {

/// Elements [begin, begin + count) of one tensor of one array.
struct ReplicaPiece {
    int array = 0;      // 0: weights; 1, 2: the optimizer's slots
    int parameter = 0;  // in the table
    int64_t begin = 0;  // in the tensor, in memory's order
    int64_t count = 0;
};

class ReplicaHasher {
  public:
    /// The arrays lie on the device and outlive it; so does `parameters`.
    ReplicaHasher(Backend& backend, const ParameterTable& parameters, const float* weights,
                  const std::vector<Update::Slot>& slots);

    /// Hashes the weights, with `state` the optimizer's slots, too. The gaps between tensors belong to no hash.
    void hash(bool state);
    /// XXH3 of the pieces' hashes, in order: a function of the values alone, whatever the number of ranks and threads.
    uint64_t weights() const { return sum_of(0, weight_pieces_); }
    uint64_t slots() const { return sum_of(weight_pieces_, pieces_.size()); }

    /// The pieces hashed last, and their hashes.
    std::span<const ReplicaPiece> pieces() const { return std::span(pieces_).first(hashed_); }
    std::span<const uint64_t> hashes() const { return std::span(hashes_).first(hashed_); }
    /// A piece's elements as they are now.
    std::vector<float> values(const ReplicaPiece& piece) const;
    /// "fc1.weight[3, 17]", "momentum/fc1.bias[4]": an element of a piece as it is found in the files.
    std::string element_name(const ReplicaPiece& piece, int64_t element) const;

  private:
    struct Array {
        std::string prefix;  // "" or "momentum/", as in optimizer.safetensors
        const float* values;
    };

    const float* device_values(const ReplicaPiece& piece) const;
    uint64_t sum_of(std::size_t first, std::size_t end) const;

    Backend& backend_;
    const ParameterTable& parameters_;
    std::vector<Array> arrays_;
    std::vector<ReplicaPiece> pieces_;  // those of the weights first
    std::size_t weight_pieces_ = 0;
    std::size_t hashed_ = 0;
    std::vector<uint64_t> hashes_;
    std::vector<ShardRange> weight_ranges_, all_ranges_;  // how pieces are dealt to the device's streams
    std::vector<std::vector<float>> staging_;             // on the host, for each range
};

}  // namespace lockstep
