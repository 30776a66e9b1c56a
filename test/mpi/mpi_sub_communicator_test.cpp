// Parts of an MPI job as worlds of their own, side by side and one after the other.
#include <catch2/catch.hpp>

#include "comm/collective_cases.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/reducer_cases.hpp"
#include "comm/sub_communicator.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("MPI: worlds side by side do what the whole job does") {
    int argc = 0;  // MPI is initialised by the test's main()
    char** argv = nullptr;
    const auto job = make_mpi_communicator(argc, argv);
    job->set_timeout(60);
    for (int split = 0; split <= job->size(); ++split) {
        const bool left = job->rank() < split;
        const auto world = make_sub_communicator(*job, left ? 0 : split, left ? split : job->size() - split, split);
        CHECK(world->local_size() == world->size());
        CHECK(fault_in_collectives(*world) == "");
        CHECK(fault_in_messages(*world) == "");
        ReducerCase c;
        c.shards = 6;
        c.elements = 5000;
        c.steps = {std::vector<int64_t>(6, 3), {3, 0, 0, 3, 3, 1}};
        CHECK(fault_in_canonical(*world, c) == "");
        CHECK(fault_in_collectives(*job) == "");
    }
}
