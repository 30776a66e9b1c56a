// Parts of different lengths, gathered by ranks that are threads, arrive whole, in order and once.
#include "comm/gather_parts.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "comm/thread_communicator.hpp"

namespace lockstep {

TEST_CASE("parts of any lengths, none among them, reach all ranks in order; what is sent is foretold") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int world = 1; world <= 9; ++world) {
        for (int round = 0; round < 4; ++round) {
            std::vector<int64_t> counts(static_cast<std::size_t>(world));
            for (int64_t& count : counts) count = static_cast<int64_t>(random() % 4) * 100;
            const auto total = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
            std::vector<float> expected(total);
            std::iota(expected.begin(), expected.end(), 1.0F);
            std::vector<std::vector<float>> all(static_cast<std::size_t>(world));
            run_thread_world(world, [&](Communicator& comm) {
                const auto rank = static_cast<std::size_t>(comm.rank());
                const auto begin = std::accumulate(counts.begin(), counts.begin() + comm.rank(), int64_t{0});
                std::vector<float> own(total, 0.0F);
                std::copy_n(expected.begin() + begin, counts[rank], own.begin() + begin);
                gather_parts(comm, counts, own);
                all[rank] = own;
            });
            for (const std::vector<float>& own : all) CHECK(own == expected);
            int64_t sent = 0;
            for (int rank = 0; rank < world; ++rank) sent += parts_sent(counts, rank);
            CHECK(sent == (world - 1) * static_cast<int64_t>(total));  // each rank gets what it lacks, once
        }
    }
}

}  // namespace lockstep
