// The native reducer leaves the order between ranks to the transport: near the tree within a stated bound, equal at one
// rank.
#include <catch2/catch.hpp>

#include "comm/reducer_cases.hpp"
#include "comm/thread_communicator.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// Either order rounds each term at most V - 1 times: |native - canonical| <= 2 (V - 1) eps sum |x_v|, up to terms of
// eps^2.
double bound_in_eps(int shards) {
    return 2.0 * (shards - 1) * 1.0001;
}

}  // namespace

TEST_CASE("native sums stay within 2 (V - 1) eps sum|x| of the canonical ones") {
    for (const int world : {1, 2, 3, 4, 7, 8}) {
        for (const int shards : {4, 8, 12}) {
            for (const int64_t empty : {0, 3}) {
                std::vector<int64_t> sizes(static_cast<size_t>(shards), 2);
                for (int64_t v = 0; v < empty; ++v) sizes[static_cast<size_t>(v)] = 0;
                std::vector<double> deviation(static_cast<size_t>(world), -1);
                std::vector<Flat> totals(static_cast<size_t>(world));
                run_thread_world(world, [&](Communicator& comm) {
                    const auto reducer = make_native_reducer(comm, shards, {kTestLead, 1000}, 1024, plain_adder());
                    const auto rank = static_cast<size_t>(comm.rank());
                    for (uint64_t step = 0; step < 2; ++step) {
                        totals[rank] = reduce_once(comm, *reducer, shards, sizes, 1000, step);
                        deviation[rank] =
                            std::max(deviation[rank], deviation_in_eps(totals[rank], shards, sizes, 1000, step));
                    }
                });
                INFO("W " << world << " V " << shards << " empty " << empty);
                for (int r = 0; r < world; ++r) {
                    CHECK(deviation[static_cast<size_t>(r)] <= bound_in_eps(shards));
                    CHECK(same_bits(totals[static_cast<size_t>(r)], totals[0]));
                }
                if (world == 1) CHECK(deviation[0] == 0);
            }
        }
    }
}

TEST_CASE("native bits differ from the canonical ones where the order does") {
    const std::vector<int64_t> sizes(8, 1);
    run_thread_world(4, [&](Communicator& comm) {
        const auto reducer = make_native_reducer(comm, 8, {kTestLead, 1000}, 1 << 20, plain_adder());
        const Flat total = reduce_once(comm, *reducer, 8, sizes, 1000, 1);
        if (same_bits(total, flat_sum(1, {0, 8}, sizes, 1000))) throw std::logic_error("the ring has the tree's bits");
        if (reducer->bytes_sent() != 4000 || reducer->messages_sent() != 1) throw std::logic_error("counted wrongly");
    });
}
