// Who holds the others up: found from what ranks tell of their own work, whatever their number of shards.
#include <catch2/catch.hpp>

#include "train/pace.hpp"

using namespace lockstep;

TEST_CASE("a rank that takes many times as long as the others is found, with what it costs") {
    const auto straggler = find_straggler({0.010, 0.011, 0.200, 0.010}, {2, 2, 2, 2}, 0.21);
    REQUIRE(straggler);
    CHECK(straggler->rank == 2);
    CHECK(straggler->step_s == 0.200);
    CHECK(straggler->usual_s == 0.010);
    CHECK(straggler->lost == Approx(0.190 / 0.21));
    CHECK(straggler_text(*straggler, "node3") ==
          "rank 2 on node3 holds the others up: its own work takes 200 ms a step, 20.0 times as long as theirs, and "
          "they wait for it 90% of the time");
    // A slow rank's steps are written out, too: never as 1.46e+03.
    CHECK(straggler_text({0, 1.4567, 0.1, 0.5}, "n").find(" 1457 ms a step") != std::string::npos);
    CHECK(straggler_text({0, 0.9996, 0.1, 0.5}, "n").find(" 1000 ms a step") != std::string::npos);
}

TEST_CASE("rank 0 and one of two ranks can be the straggler, too") {
    CHECK(find_straggler({0.2, 0.01}, {4, 4}, 0.2)->rank == 0);
    CHECK(find_straggler({0.01, 0.2}, {4, 4}, 0.2)->rank == 1);
}

TEST_CASE("nobody is called a straggler for having more shards, for little time, or for a little more of it") {
    CHECK_FALSE(find_straggler({0.04, 0.01}, {4, 1}, 0.05));           // as fast for a shard
    CHECK_FALSE(find_straggler({0.010, 0.025}, {1, 1}, 0.03));         // 2.5 times
    CHECK_FALSE(find_straggler({0.001, 0.004, 0.001}, {1, 1, 1}, 1));  // 4 times, but the step's second goes elsewhere
}

TEST_CASE("ranks that have not told, or have no work, do not count") {
    CHECK_FALSE(find_straggler({0.2, 0, 0}, {1, 1, 1}, 0.2));
    CHECK_FALSE(find_straggler({0.01, 0.01, 0.2}, {1, 1, 0}, 0.2));
    CHECK(find_straggler({0.01, 0, 0.2}, {1, 1, 1}, 0.2)->rank == 2);
    CHECK_FALSE(find_straggler({}, {}, 1));
}
