// What `verify` keeps of each step of a world, and how it finds the first place where two worlds differ.
#include "train/world_digest.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

using namespace lockstep;

TEST_CASE("digests survive the way to other ranks, and joined ones have the indices of all shards") {
    const std::vector<StepDigest> ranks{{0, {1, 2, ~uint64_t{0}}, 0xffc00000U, {7, 8}, "", 0.25},
                                        {3, {4}, 0xffc00000U, {7, 9}, "not finite", 1}};
    CHECK(unpack_digests(pack_digests(ranks)) == ranks);
    CHECK(unpack_digests(pack_digests({})).empty());
    CHECK(join_digests(ranks).indices == std::vector<uint64_t>{1, 2, ~uint64_t{0}, 4});
    CHECK(join_digests(ranks).tensors == ranks[0].tensors);
}

TEST_CASE("the first place that differs is named, in the order of a step") {
    using Kind = StatePlace::Kind;
    const StepDigest world{0, {10, 11, 12, 13}, 5, {20, 21, 22, 23}, "", 1};
    const StepDigest rank{2, {12, 13}, 5, {20, 21, 22, 23}, "", 2};
    CHECK(first_difference(world, rank) == std::nullopt);
    StepDigest other = rank;
    other.tensors[3] = 0;
    CHECK(first_difference(world, other) == StatePlace{Kind::kTensor, 3});
    other.tensors[1] = 0;
    CHECK(first_difference(world, other) == StatePlace{Kind::kTensor, 1});
    other.loss = 6;
    CHECK(first_difference(world, other) == StatePlace{Kind::kLoss, 0});
    other.indices[1] = 0;
    CHECK(first_difference(world, other) == StatePlace{Kind::kIndices, 3});
    other.failure = "not finite";
    CHECK(first_difference(world, other) == StatePlace{Kind::kFailure, 0});
    StepDigest shorter = rank;
    shorter.tensors.pop_back();
    CHECK(first_difference(world, shorter) == StatePlace{Kind::kTensor, 3});
}

TEST_CASE("the first element that differs is named by its bits, and all that differ are counted") {
    const std::vector<float> left{1.0F, 0.0F, 3.0F, 4.0F};
    std::vector<float> right = left;
    const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
    CHECK(first_element_difference(bytes(left), bytes(right), 4) == std::nullopt);
    right[1] = -0.0F;  // == would not see it
    right[3] = 5.0F;
    CHECK(first_element_difference(bytes(left), bytes(right), 4) == ElementDifference{1, 0, 0x80000000U, 2});
    right.pop_back();
    right[1] = 0;
    CHECK(first_element_difference(bytes(left), bytes(right), 4) == ElementDifference{3, 0x40800000U, 0, 1});
}
