// What evaluation and prediction go through alike: this rank's rows of every piece of a split, as the network's
// outputs, and what all ranks made of theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "train/evaluator.hpp"

namespace lockstep {

/// Some of this rank's rows of a piece: as many as go through the network at once.
struct EvaluationRows {
    const Batch& batch;  // of the whole piece
    int first = 0;       // row of the batch
    int count = 0;
    const float* outputs = nullptr;   // [count][Network::outputs()], on the device
    const int32_t* labels = nullptr;  // [count], on the device
    bool last() const { return first + count == batch.rows; }
};

/// Calls visit(rows) for this rank's part of every piece, row after row; once where it has none.
void for_each_piece(const EvaluationContext& context, const Dataset& data, const ShardPlan& plan,
                    FunctionRef<void(const EvaluationRows&)> visit);

/// What every rank gathered, back as values: [rank][…].
template <class T>
std::vector<std::vector<T>> gather_values(Communicator& comm, std::span<const T> own) {
    std::vector<std::vector<T>> all;
    for (const std::vector<std::byte>& bytes : comm.all_gather(std::as_bytes(own))) {
        std::vector<T>& values = all.emplace_back(bytes.size() / sizeof(T));
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    return all;
}

}  // namespace lockstep
