// Time of one reduction, ours against the library's, interleaved so that a noisy machine disturbs both alike.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/mpi_communicator.hpp"
#include "comm/reducer.hpp"

using namespace lockstep;

namespace {

double milliseconds_of(FunctionRef<void()> body) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = std::chrono::steady_clock::now();
    body();
    return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void report(const char* name, std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    std::printf("%-14s best %.3f ms  10%% %.3f  median %.3f  90%% %.3f\n", name, times.front(),
                times[times.size() / 10], times[times.size() / 2], times[times.size() * 9 / 10]);
}

}  // namespace

int main(int argc, char** argv) {
    const auto comm = make_mpi_communicator(argc, argv);
    const int64_t elements = argc > 1 ? std::atoll(argv[1]) : 535818;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 300;
    const int shards = argc > 3 ? std::atoi(argv[3]) : 8;
    const std::vector<int64_t> sizes(static_cast<std::size_t>(shards), 16);
    const ReduceLayout layout{16, elements};
    const auto nodes = maximal_nodes(shards, shards_of_rank(shards, comm->rank(), comm->size()));
    std::vector<std::vector<float>> memory(std::max<std::size_t>(1, nodes.size()),
                                           std::vector<float>(static_cast<std::size_t>(16 + elements)));
    std::vector<float*> partial;
    for (auto& flat : memory) partial.push_back(flat.data());
    const auto canonical = make_canonical_reducer(*comm, shards, layout, 4 << 20, 32 << 10, plain_adder());
    const auto native = make_native_reducer(*comm, shards, layout, 4 << 20, plain_adder());
    std::vector<double> of_canonical;
    std::vector<double> of_native;
    std::vector<double> of_library;
    for (int round = 0; round < rounds; ++round) {
        for (Reducer* reducer : {canonical.get(), native.get()}) {
            (reducer == canonical.get() ? of_canonical : of_native).push_back(milliseconds_of([&] {
                reducer->begin(sizes, partial);
                reducer->finish();
            }));
        }
        of_library.push_back(milliseconds_of([&] {
            MPI_Allreduce(MPI_IN_PLACE, partial[0], static_cast<int>(16 + elements), MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD);
        }));
    }
    if (comm->rank() == 0) {
        std::printf("%lld floats, %d ranks, V = %d, %d rounds\n", static_cast<long long>(elements), comm->size(),
                    shards, rounds);
        report("canonical", of_canonical);
        report("native", of_native);
        report("MPI_Allreduce", of_library);
    }
    return 0;
}
