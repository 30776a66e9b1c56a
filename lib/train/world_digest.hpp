// What a rank of a world holds after a step, as hashes: cheap to compare with every other rank's, and enough to say
// where two of them part. Values are looked at only then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Of one rank, or of a whole world (then with the indices of all shards).
struct StepDigest {
    int first_shard = 0;
    std::vector<uint64_t> indices;  // of each of its shards: the hash of its samples' indices
    uint32_t loss = 0;              // bits of the mean over the global batch
    std::vector<uint64_t> tensors;  // hashes of weights (ParameterTable::placed), then of each slot of the optimizer
    std::string failure;            // the step failed on all ranks of the world alike: loss or gradient not finite
    double seconds = 0;             // that the step took; belongs to no comparison
    bool operator==(const StepDigest&) const = default;
};

/// As a message of the ranks that one process holds.
std::vector<std::byte> pack_digests(std::span<const StepDigest> digests);
std::vector<StepDigest> unpack_digests(std::span<const std::byte> bytes);

/// What a world of these ranks holds: the first one's, with the indices of all.
StepDigest join_digests(std::span<const StepDigest> ranks);

/// What two ranks may differ in, in the order of a step: samples, loss, weights and optimizer state.
struct StatePlace {
    enum class Kind { kIndices, kLoss, kTensor, kFailure } kind = Kind::kTensor;
    int number = 0;  // of the shard; of the tensor as in StepDigest::tensors
    bool operator==(const StatePlace&) const = default;
};
/// The first place where `own` (of a rank) is not what `reference` (of a world) says.
std::optional<StatePlace> first_difference(const StepDigest& reference, const StepDigest& own);

/// The first element in which two arrays of numbers of `width` bytes (4 or 8) differ. A missing element differs, too.
struct ElementDifference {
    int64_t element = 0;
    uint64_t reference = 0, own = 0;  // bits
    int64_t elements = 0;             // that differ, of all
    bool operator==(const ElementDifference&) const = default;
};
std::optional<ElementDifference> first_element_difference(std::span<const std::byte> reference,
                                                          std::span<const std::byte> own, std::size_t width);

}  // namespace lockstep
