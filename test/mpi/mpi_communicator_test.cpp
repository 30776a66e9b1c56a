// What only MPI can show of the communicator: the same cases as with threads, and its errors.
#include <mpi.h>

#include <catch2/catch.hpp>

#include "comm/collective_cases.hpp"
#include "comm/mpi_communicator.hpp"
#include "core/error.hpp"

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

TEST_CASE("MPI: collectives and messages work") {
    const auto comm = communicator();
    CHECK(fault_in_collectives(*comm) == "");
    CHECK(fault_in_messages(*comm) == "");
    CHECK(comm->local_size() == comm->size());
}

TEST_CASE("MPI: silent ranks are named after the deadline, and the others told") {
    const auto comm = communicator();
    if (comm->size() < 2) return;
    comm->barrier();
    std::byte late{};
    Request* request = comm->rank() == 0 ? &comm->receive(0, 1, 5, {&late, 1}) : nullptr;
    if (request != nullptr) {
        comm->set_timeout(1);
        std::string silent = comm->size() == 2 ? "rank 1" : "ranks 1";
        for (int rank = 2; rank < comm->size(); ++rank) silent += ", " + std::to_string(rank);
        CHECK_THROWS_WITH(comm->wait(*request, 1), silent + " did not answer for 1 s (device.timeout_s)");
        comm->set_timeout(60);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (comm->size() > 2 && comm->rank() > 0) {  // rank 0's failure ends a wait that is not for it
        std::byte never{};
        Request& waits = comm->receive(0, comm->rank() % (comm->size() - 1) + 1, 6, {&never, 1});
        CHECK_THROWS_WITH(comm->wait(waits, 1),
                          "rank " + std::to_string(comm->rank()) + " stops since rank 0 has failed");
        MPI_Barrier(MPI_COMM_WORLD);
        comm->send_recv((comm->rank() + comm->size() - 3) % (comm->size() - 1) + 1, {&never, 1}, Communicator::kNobody,
                        {}, 6);
        while (!waits.test()) {
        }
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    // The late answer still comes, so that nothing is left under way.
    if (comm->rank() == 1) comm->send_recv(0, {&late, 1}, Communicator::kNobody, {}, 5);
    if (request != nullptr) comm->wait(*request, 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("MPI: an error of the library names operation and peer") {
    const auto comm = communicator();
    std::byte b{};
    CHECK_THROWS_WITH(comm->send(0, comm->size(), 0, {&b, 1}),
                      Catch::StartsWith("sending to rank " + std::to_string(comm->size()) + " failed: MPI_ERR_RANK"));
    CHECK_THROWS_AS(comm->receive(1, -7, 0, {&b, 1}), Error);
}

TEST_CASE("MPI: a message of another length than expected is refused") {
    const auto comm = communicator();
    if (comm->size() < 2) return;
    std::vector<std::byte> bytes(8);
    for (const std::size_t expected : {4, 16}) {
        if (comm->rank() == 0) comm->send_recv(1, bytes, Communicator::kNobody, {}, 6);
        if (comm->rank() == 1) {
            std::vector<std::byte> in(expected);
            CHECK_THROWS_AS(comm->send_recv(Communicator::kNobody, {}, 0, in, 6), Error);
        }
    }
    comm->barrier();
}

TEST_CASE("MPI: a message that MPI cannot count is refused before it is sent") {
    const auto comm = communicator();
    const std::span<const std::byte> huge(static_cast<const std::byte*>(nullptr), std::size_t{1} << 31);
    CHECK_THROWS_WITH(comm->send(0, 0, 0, huge), Catch::Contains("lower reduce.bucket_kib"));
}
