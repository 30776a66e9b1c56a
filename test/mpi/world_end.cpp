// One rank fails in a chosen way; the exit status of mpirun says whether the others saw it as they should.
//   abort:  the last rank ends the world with code 5 while the others wait
//   silent: the last rank is alive but never answers; every other one must name it, then code 42
//   unwind: the last rank throws; its communicator goes away without waiting for anybody, then code 7
#include <mpi.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "comm/mpi_communicator.hpp"
#include "core/error.hpp"

namespace {

using namespace lockstep;

[[noreturn]] void sleep_until_killed() {
    for (;;) {
        const timespec second{1, 0};
        nanosleep(&second, nullptr);
    }
}

// Rank 0 collects what the ranks saw and ends the world with 42 if all name the last one.
void judge(Communicator& comm, const std::string& seen) {
    const std::string expected = "rank " + std::to_string(comm.size() - 1) + " did not answer for 1 s";
    // Whoever gives up first tells the others, who have nothing to add.
    int right = seen.starts_with(expected) || seen.find(" stops since rank ") != std::string::npos ? 1 : 0;
    std::fprintf(stderr, "rank %d saw: %s\n", comm.rank(), seen.c_str());
    if (comm.rank() != 0) {
        MPI_Send(&right, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        sleep_until_killed();
    }
    for (int rank = 1; rank + 1 < comm.size(); ++rank) {
        int theirs = 0;
        MPI_Recv(&theirs, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        right &= theirs;
    }
    comm.abort(right == 1 ? 42 : 1);  // does not return
}

[[noreturn]] void unwind(int& argc, char**& argv) {
    try {
        const auto comm = make_mpi_communicator(argc, argv);
        if (comm->rank() + 1 == comm->size()) throw std::string("failed");
        comm->barrier();
    } catch (const std::string&) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "unwind") unwind(argc, argv);
    const auto comm = make_mpi_communicator(argc, argv);
    const bool last = comm->rank() + 1 == comm->size();
    if (mode == "abort" && last) comm->abort(5);
    if (mode == "silent") {
        comm->barrier();
        comm->set_timeout(1);
        if (last) sleep_until_killed();
        std::string seen = "nothing";
        try {
            comm->all_gather(std::string("a ring: rank 0 waits for the last one, 1 for 0, 2 for 1"));
        } catch (const Error& error) {
            seen = error.what();
        }
        judge(*comm, seen);
    }
    comm->barrier();
    return 1;
}
