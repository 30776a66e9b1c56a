// Hashes of the tensors in a flat array: XXH3 of pieces of a fixed length, then XXH3 of the pieces' hashes. Pieces are
// shared out among the device's threads; who hashes which decides nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "nn/parameters.hpp"
#include "train/host_view.hpp"

namespace lockstep {

/// Elements of a piece: a tensor's hash is a function of its values and of this number.
inline constexpr int64_t kHashPiece = 4096;

class TensorHasher {
  public:
    /// Both must outlive it.
    TensorHasher(const ParameterTable& parameters, Backend& backend);

    /// out[i] = hash of tensor i (of ParameterTable::placed) of the flat array, for tensors [first, end): gradients and
    /// slots have the trainable ones. Elements count in the array's order,
    /// which is the same at every number of ranks and threads. `flat` lies on the device; what is queued on its main
    /// stream comes before.
    void hash(const float* flat, int first, int end, std::span<uint64_t> out);

  private:
    struct Piece {
        int64_t offset;  // in the flat array
        int64_t count;
    };

    void hash_copies(const float* flat, int begin, int end);

    Backend& backend_;
    HostView view_;
    std::vector<Piece> pieces_;     // of all tensors, in order
    std::vector<int> first_piece_;  // of tensor i; one entry more for the end
    std::vector<uint64_t> hashes_;  // of pieces_
};

}  // namespace lockstep
