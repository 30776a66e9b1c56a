#include "train/world_digest.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using nlohmann::json;

uint64_t number_at(std::span<const std::byte> bytes, std::size_t i, std::size_t width) {
    uint64_t value = 0;  // little-endian, as everything in memory here
    if ((i + 1) * width <= bytes.size()) std::memcpy(&value, bytes.data() + i * width, width);
    return value;
}

}  // namespace

std::vector<std::byte> pack_digests(std::span<const StepDigest> digests) {
    json all = json::array();
    for (const StepDigest& d : digests) {
        all.push_back({d.first_shard, d.indices, d.loss, d.tensors, d.failure, d.seconds});
    }
    const std::vector<uint8_t> packed = json::to_cbor(all);
    const auto bytes = std::as_bytes(std::span(packed));
    return {bytes.begin(), bytes.end()};
}

std::vector<StepDigest> unpack_digests(std::span<const std::byte> bytes) {
    std::vector<StepDigest> digests;
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
    for (const json& d : json::from_cbor(begin, begin + bytes.size())) {
        digests.push_back({d.at(0).get<int>(), d.at(1).get<std::vector<uint64_t>>(), d.at(2).get<uint32_t>(),
                           d.at(3).get<std::vector<uint64_t>>(), d.at(4).get<std::string>(), d.at(5).get<double>()});
    }
    return digests;
}

StepDigest join_digests(std::span<const StepDigest> ranks) {
    StepDigest world = ranks.front();
    for (const StepDigest& rank : ranks.subspan(1)) {
        world.indices.insert(world.indices.end(), rank.indices.begin(), rank.indices.end());
    }
    return world;
}

std::optional<StatePlace> first_difference(const StepDigest& reference, const StepDigest& own) {
    using Kind = StatePlace::Kind;
    if (own.failure.empty() != reference.failure.empty()) return StatePlace{Kind::kFailure, 0};
    if (!own.failure.empty()) return std::nullopt;  // of a failed step nothing else is said
    for (std::size_t i = 0; i < own.indices.size(); ++i) {
        const int shard = own.first_shard + static_cast<int>(i);
        const auto at = static_cast<std::size_t>(shard - reference.first_shard);
        if (at >= reference.indices.size() || own.indices[i] != reference.indices[at])
            return StatePlace{Kind::kIndices, shard};
    }
    if (own.loss != reference.loss) return StatePlace{Kind::kLoss, 0};
    const auto [left, right] =
        std::mismatch(reference.tensors.begin(), reference.tensors.end(), own.tensors.begin(), own.tensors.end());
    if (left == reference.tensors.end() && right == own.tensors.end()) return std::nullopt;
    return StatePlace{Kind::kTensor, static_cast<int>(left - reference.tensors.begin())};
}

std::optional<ElementDifference> first_element_difference(std::span<const std::byte> reference,
                                                          std::span<const std::byte> own, std::size_t width) {
    std::optional<ElementDifference> difference;
    const std::size_t most = std::max(reference.size(), own.size()) / width;
    const std::size_t both = std::min(reference.size(), own.size()) / width;
    for (std::size_t i = 0; i < most; ++i) {
        if (i < both && std::memcmp(reference.data() + i * width, own.data() + i * width, width) == 0) continue;
        if (!difference) {
            difference = {static_cast<int64_t>(i), number_at(reference, i, width), number_at(own, i, width), 0};
        }
        ++difference->elements;
    }
    return difference;
}

}  // namespace lockstep
