// The reducers over real messages, and that a step allocates nothing once its pattern has been seen.
#include <catch2/catch.hpp>

#include "comm/mpi_communicator.hpp"
#include "comm/reducer_cases.hpp"
#include "support/allocation_counter.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::unique_ptr<Communicator> communicator() {
    int argc = 0;  // MPI is initialised by the test's main()
    char** argv = nullptr;
    auto comm = make_mpi_communicator(argc, argv);
    comm->set_timeout(60);
    return comm;
}

}  // namespace

TEST_CASE("MPI: every rank ends with the bits of the tree") {
    const auto comm = communicator();
    for (const int64_t bucket_bytes : {1 << 10, 64 << 10, 64 << 20}) {
        for (const int shards : {1, 8, 12}) {
            for (const int64_t elements : {0, 5, 40003}) {
                ReducerCase c;
                c.shards = shards;
                c.elements = elements;
                c.bucket_bytes = bucket_bytes;
                c.small_bytes = 8192;
                c.steps = {std::vector<int64_t>(static_cast<size_t>(shards), 3),
                           std::vector<int64_t>(static_cast<size_t>(shards), 0),
                           std::vector<int64_t>(static_cast<size_t>(shards), 3)};
                c.steps[1].back() = 1;
                INFO("V " << shards << " elements " << elements << " bucket " << bucket_bytes);
                CHECK(fault_in_canonical(*comm, c) == "");
            }
        }
    }
}

TEST_CASE("MPI: native sums stay within 2 (V - 1) eps sum|x| of the canonical ones") {
    const auto comm = communicator();
    std::vector<int64_t> sizes(8, 1);
    for (const int64_t first : {1, 0}) {
        sizes[0] = first;
        const auto reducer = make_native_reducer(*comm, 8, {kTestLead, 5000}, 4096, plain_adder());
        const Flat total = reduce_once(*comm, *reducer, 8, sizes, 5000, 3);
        CHECK(deviation_in_eps(total, 8, sizes, 5000, 3) <= 2.0 * 7 * 1.0001);
    }
}

TEST_CASE("MPI: a step of a pattern seen before allocates nothing") {
    const auto comm = communicator();
    constexpr int kShards = 8;
    const std::vector<int64_t> full(kShards, 2);
    std::vector<int64_t> part = full;
    part[2] = part[7] = 0;
    const int64_t elements = 10000;
    std::vector<Flat> memory(8, Flat(static_cast<size_t>(kTestLead + elements)));
    std::vector<float*> partial;
    for (Flat& flat : memory) partial.push_back(flat.data());
    const auto reducer = make_canonical_reducer(*comm, kShards, {kTestLead, elements}, 4096, 1024, plain_adder());
    const auto step = [&](const std::vector<int64_t>& sizes) {
        reducer->begin(sizes, partial);
        reducer->ready(elements / 2);
        reducer->finish();
    };
    step(full);
    step(part);
    const AllocationCounter counter;
    for (int i = 0; i < 5; ++i) {
        step(full);
        step(part);
    }
    const int64_t allocations = counter.count();
    CHECK(allocations == 0);
}
