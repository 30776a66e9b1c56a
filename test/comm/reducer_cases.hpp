// Reductions whose right answer is known to the bit: shard values are functions of (seed, shard, element), partial sums
// and the total follow from the definition of the tree. Run by all ranks of any communicator.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "comm/reduce_plan.hpp"
#include "comm/reducer.hpp"

namespace lockstep::test {

constexpr int64_t kTestLead = 16;

/// Of very different sizes and both signs, so that every order of additions has its own bits.
inline float shard_value(uint64_t seed, int shard, int64_t element) {
    uint64_t z = seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(shard) * 0xBF58476D1CE4E5B9u +
                 static_cast<uint64_t>(element);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const auto bits = static_cast<uint32_t>(z);
    return std::bit_cast<float>((bits & 0x807fffffu) | ((120u + static_cast<uint32_t>(z >> 40) % 12) << 23));
}

/// The sum of a node by its definition. `sizes` says which shards are empty; an empty node gives false.
inline bool node_sum(uint64_t seed, ShardRange node, std::span<const int64_t> sizes, int64_t element, float& sum) {
    if (node.size() == 1) {
        sum = shard_value(seed, node.begin, element);
        return sizes[static_cast<size_t>(node.begin)] > 0;
    }
    const int middle = split_point(node.begin, node.end);
    float right = 0;
    const bool has_left = node_sum(seed, {node.begin, middle}, sizes, element, sum);
    const bool has_right = node_sum(seed, {middle, node.end}, sizes, element, right);
    if (has_left && has_right) sum = sum + right;
    if (!has_left) sum = right;
    return has_left || has_right;
}

using Flat = std::vector<float>;  // [lead | elements]

inline Flat flat_sum(uint64_t seed, ShardRange node, std::span<const int64_t> sizes, int64_t elements) {
    Flat flat(static_cast<size_t>(kTestLead + elements));
    for (size_t i = 0; i < flat.size(); ++i) node_sum(seed, node, sizes, static_cast<int64_t>(i), flat[i]);
    return flat;
}

/// One reduction on this rank: what partial[0] holds afterwards. Buckets are announced as a backward pass would.
inline Flat reduce_once(Communicator& comm, Reducer& reducer, int shards, std::span<const int64_t> sizes,
                        int64_t elements, uint64_t seed) {
    const auto nodes = maximal_nodes(shards, shards_of_rank(shards, comm.rank(), comm.size()), sizes);
    std::vector<Flat> memory;
    for (const ShardRange& node : nodes) memory.push_back(flat_sum(seed, node, sizes, elements));
    if (memory.empty()) {  // no flags, and nothing else that may be read
        memory.emplace_back(static_cast<size_t>(kTestLead + elements), std::numeric_limits<float>::quiet_NaN());
        std::fill_n(memory.front().begin(), kTestLead, 0.0F);
    }
    std::vector<float*> partial;
    for (Flat& flat : memory) partial.push_back(flat.data());
    reducer.begin(sizes, partial);
    for (const int64_t percent : {70, 65, 10, 0}) {
        reducer.ready(elements * percent / 100);
        reducer.poll();
    }
    reducer.finish();
    return memory.front();
}

inline bool same_bits(const Flat& a, const Flat& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Every rank in turn raises a flag in its lead, be it idle or not, and all must see one; "" or what is wrong on this
/// rank.
inline std::string fault_in_flags(Communicator& comm, Reducer& reducer, int shards, std::span<const int64_t> sizes,
                                  int64_t elements) {
    const auto nodes = maximal_nodes(shards, shards_of_rank(shards, comm.rank(), comm.size()), sizes);
    for (int flagged = 0; flagged < comm.size(); ++flagged) {
        std::vector<Flat> memory(std::max<size_t>(nodes.size(), 1),
                                 Flat(static_cast<size_t>(kTestLead + elements), 0.0F));
        std::vector<float*> partial;
        for (Flat& flat : memory) partial.push_back(flat.data());
        if (comm.rank() == flagged) memory[0][1] = 1;
        reducer.begin(sizes, partial);
        reducer.finish();
        if (memory[0][1] != 1 || memory[0][0] != 0)
            return "the flag of rank " + std::to_string(flagged) + " is not seen";
    }
    return "";
}

struct ReducerCase {
    int shards = 8;
    int64_t elements = 1000;
    int64_t bucket_bytes = 1024;
    int64_t small_bytes = 0;
    std::vector<std::vector<int64_t>> steps;  // sizes of the shards, step by step
    uint64_t seed = 1;
};

/// Runs the steps with one canonical reducer; "" or what is wrong on this rank.
inline std::string fault_in_canonical(Communicator& comm, const ReducerCase& c) {
    const auto reducer =
        make_canonical_reducer(comm, c.shards, {kTestLead, c.elements}, c.bucket_bytes, c.small_bytes, plain_adder());
    int64_t bytes = 0;
    int64_t messages = 0;
    for (size_t step = 0; step < c.steps.size(); ++step) {
        const std::vector<int64_t>& sizes = c.steps[step];
        const Flat total = reduce_once(comm, *reducer, c.shards, sizes, c.elements, c.seed + step);
        const std::string where = "step " + std::to_string(step) + ": ";
        if (!same_bits(total, flat_sum(c.seed + step, {0, c.shards}, sizes, c.elements)))
            return where + "other bits than the tree";
        for (const Bucket& bucket : make_buckets(c.elements, c.bucket_bytes)) {
            const int64_t lead = bucket.begin == 0 ? kTestLead : 0;
            const ReducePlan plan = make_reduce_plan(c.shards, comm.rank(), comm.size(), sizes,
                                                     bucket.end - bucket.begin + lead, lead, c.small_bytes);
            bytes += plan.bytes_sent;
            messages += plan.messages;
        }
        if (reducer->bytes_sent() != bytes || reducer->messages_sent() != messages)
            return where + "other counts than the plan";
    }
    return "";
}

/// Sum of |x_v| over the shards, and the largest difference of `total` from the tree in units of eps times that sum.
inline double deviation_in_eps(const Flat& total, int shards, std::span<const int64_t> sizes, int64_t elements,
                               uint64_t seed) {
    const Flat tree = flat_sum(seed, {0, shards}, sizes, elements);
    double worst = 0;
    for (size_t i = 0; i < total.size(); ++i) {
        double absolute = 0;
        for (int v = 0; v < shards; ++v) {
            if (sizes[static_cast<size_t>(v)] > 0)
                absolute += std::fabs(double{shard_value(seed, v, static_cast<int64_t>(i))});
        }
        const double difference = std::fabs(double{total[i]} - double{tree[i]}) / (absolute * 0x1p-24);
        if (!(difference <= worst)) worst = difference;  // NaN is the worst
    }
    return worst;
}

}  // namespace lockstep::test
