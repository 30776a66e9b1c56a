// The canonical reducer with ranks as threads: the bits of the tree on every rank, whatever W, the buckets and the
// sizes are.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "comm/reducer_cases.hpp"
#include "comm/thread_communicator.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string fault_in_world(int world, const ReducerCase& c) {
    std::vector<std::string> faults(static_cast<size_t>(world));
    run_thread_world(world, [&](Communicator& comm) {
        comm.set_timeout(60);
        faults[static_cast<size_t>(comm.rank())] = fault_in_canonical(comm, c);
    });
    for (int r = 0; r < world; ++r) {
        if (!faults[static_cast<size_t>(r)].empty())
            return "rank " + std::to_string(r) + ", " + faults[static_cast<size_t>(r)];
    }
    return "";
}

std::vector<int64_t> sizes_of_batch(int shards, int64_t samples) {
    std::vector<int64_t> sizes;
    for (int64_t v = 0; v < shards; ++v) sizes.push_back((v + 1) * samples / shards - v * samples / shards);
    return sizes;
}

// Gathers the sum of each rank and adds them in rank order: what a reducer must not do.
Flat rank_order_total(Communicator& comm, int shards, std::span<const int64_t> sizes, int64_t elements, uint64_t seed) {
    const auto nodes = maximal_nodes(shards, shards_of_rank(shards, comm.rank(), comm.size()), sizes);
    Flat own(static_cast<size_t>(kTestLead + elements), 0.0F);
    for (const ShardRange& node : nodes) {
        const Flat part = flat_sum(seed, node, sizes, elements);
        for (size_t i = 0; i < own.size(); ++i) own[i] += part[i];
    }
    Flat total(own.size(), 0.0F);
    for (const auto& bytes : comm.all_gather(std::as_bytes(std::span(own)))) {
        Flat part(own.size());
        std::memcpy(part.data(), bytes.data(), bytes.size());
        for (size_t i = 0; i < total.size(); ++i) total[i] += part[i];
    }
    return total;
}

}  // namespace

TEST_CASE("every rank ends with the bits of the tree, at any world and bucket size") {
    for (const int world : {1, 2, 3, 4, 5, 7, 8}) {
        for (const int64_t bucket_bytes : {1 << 10, 64 << 10, 64 << 20}) {
            for (const int shards : {8, 12}) {
                ReducerCase c;
                c.shards = shards;
                c.elements = 20011;
                c.bucket_bytes = bucket_bytes;
                c.small_bytes = bucket_bytes == 1 << 10 ? 0 : 32 << 10;
                // Full, short, tiny (most shards empty), full again.
                for (const int64_t samples : {96, 43, 3, 96}) c.steps.push_back(sizes_of_batch(shards, samples));
                INFO("W " << world << " V " << shards << " bucket " << bucket_bytes);
                CHECK(fault_in_world(world, c) == "");
            }
        }
    }
}

TEST_CASE("random shards, worlds, sizes and buckets") {
    const unsigned seed = 4711;
    std::mt19937 random(seed);
    for (int i = 0; i < 150; ++i) {
        ReducerCase c;
        c.shards = 1 + static_cast<int>(random() % 20);
        c.elements = static_cast<int64_t>(random() % 3000);
        c.bucket_bytes = int64_t{64} << (random() % 10);
        c.small_bytes = random() % 2 == 0 ? 0 : 4096;
        c.seed = random();
        for (int step = 0; step < 3; ++step) {
            std::vector<int64_t> sizes(static_cast<size_t>(c.shards));
            for (int64_t& size : sizes) size = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 9);
            sizes[random() % sizes.size()] = 1;
            c.steps.push_back(sizes);
        }
        const int world = 1 + static_cast<int>(random() % 9);
        INFO("seed " << seed << " case " << i << " W " << world << " V " << c.shards << " elements " << c.elements
                     << " bucket " << c.bucket_bytes);
        REQUIRE(fault_in_world(world, c) == "");
    }
}

TEST_CASE("a reducer that adds in rank order gives other bits") {
    const std::vector<int64_t> sizes(8, 4);
    const Flat tree = flat_sum(1, {0, 8}, sizes, 500);
    std::vector<char> same(4);
    run_thread_world(4, [&](Communicator& comm) {
        same[static_cast<size_t>(comm.rank())] = same_bits(rank_order_total(comm, 8, sizes, 500, 1), tree) ? 1 : 0;
    });
    CHECK(same == std::vector<char>(4, 0));
    // On one rank there is no order of ranks.
    run_thread_world(
        1, [&](Communicator& comm) { same[0] = same_bits(rank_order_total(comm, 8, sizes, 500, 1), tree) ? 1 : 0; });
    CHECK(same[0] == 1);
}

TEST_CASE("a flag raised by any rank reaches all, also from ranks without samples") {
    for (const int world : {1, 2, 3, 4, 7}) {
        for (const int shards : {1, 3, 4}) {
            for (const bool native : {false, true}) {
                std::vector<int64_t> sizes(static_cast<size_t>(shards), 0);
                sizes.back() = 1;
                std::vector<std::string> faults(static_cast<size_t>(world));
                run_thread_world(world, [&](Communicator& comm) {
                    const ReduceLayout layout{kTestLead, 100};
                    const auto reducer = native ? make_native_reducer(comm, shards, layout, 256, plain_adder())
                                                : make_canonical_reducer(comm, shards, layout, 256, 0, plain_adder());
                    faults[static_cast<size_t>(comm.rank())] = fault_in_flags(comm, *reducer, shards, sizes, 100);
                });
                INFO("W " << world << " V " << shards << " native " << native);
                CHECK(faults == std::vector<std::string>(static_cast<size_t>(world)));
            }
        }
    }
}

TEST_CASE("an adder is called once for each addition of a bucket where it asks for whole ones") {
    constexpr int64_t kElements = 200000;
    const auto most_calls = [](int64_t block) {
        std::vector<int64_t> calls(3, 0);
        run_thread_world(3, [&](Communicator& comm) {
            Adder adder = plain_adder();
            adder.device = &calls[static_cast<size_t>(comm.rank())];
            adder.block = block;
            adder.add = [](void* device, float* dst, const float* left, const float* right, int64_t n) {
                ++*static_cast<int64_t*>(device);
                plain_adder()(dst, left, right, n);
            };
            const auto reducer = make_canonical_reducer(comm, 8, {kTestLead, kElements}, 64 << 20, 0, adder);
            const std::vector<int64_t> sizes(8, 1);
            const Flat total = reduce_once(comm, *reducer, 8, sizes, kElements, 1);
            if (!same_bits(total, flat_sum(1, {0, 8}, sizes, kElements))) throw std::logic_error("other bits");
        });
        return *std::max_element(calls.begin(), calls.end());
    };
    CHECK(most_calls(Adder::kWhole) < 8);  // 8 shards are added up by 7 additions
    CHECK(most_calls(16 * 1024) > 8);
}

TEST_CASE("time in finish is counted") {
    run_thread_world(2, [&](Communicator& comm) {
        const auto reducer = make_canonical_reducer(comm, 4, {kTestLead, 100}, 1024, 0, plain_adder());
        reduce_once(comm, *reducer, 4, std::vector<int64_t>(4, 1), 100, 1);
        if (!(reducer->seconds_waiting() > 0)) throw std::logic_error("no time");
    });
}
