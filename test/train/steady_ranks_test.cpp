// Under mpirun: what steps send and receive allocates nothing either, on any rank (MPI's own memory apart).
#include <catch2/catch.hpp>

#include "comm/mpi_communicator.hpp"
#include "train/steady_steps.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("steps of each rank allocate nothing, whatever its shards and the number of messages") {
    int argc = 0;  // MPI is initialised by the test's main()
    char** argv = nullptr;
    const auto comm = make_mpi_communicator(argc, argv);
    comm->set_timeout(60);
    for (const int64_t samples : {384, 403}) {
        for (const int64_t bucket_kib : {4, 4096}) {
            Job job = steady_job("mlp", "momentum");
            job.samples = samples;
            CAPTURE(comm->rank(), samples, bucket_kib);
            CHECK(allocations_of_steps(*comm, job, {comm->size(), {1}, {"auto"}, bucket_kib}, 9, 40) == 0);
        }
    }
}
