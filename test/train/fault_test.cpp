// The planted fault: what its text may be, and that exactly one bit of one weight of one rank flips, once.
#include <bit>
#include <catch2/catch.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "train/fault.hpp"
#include "train/step_engine.hpp"

using namespace lockstep;

TEST_CASE("a fault is read in any order, and nothing else is taken for one") {
    CHECK(parse_fault("rank:1,step:7,bit:31", "--fault") == Fault{1, 7, 31});
    CHECK(parse_fault("bit:0,rank:0,step:1", "--fault") == Fault{0, 1, 0});
    for (const char* text :
         {"", "rank:1", "rank:1,step:7", "rank:1,step:7,bit:3,", "rank:1,step:7,bit:3,bit:4", "rank:1,step:7,bit",
          "rank:1,step:7,bits:3", "rank=1,step=7,bit=3", ",rank:1,step:7,bit:3"}) {
        INFO(text);
        CHECK_THROWS_WITH(parse_fault(text, "--fault"),
                          Catch::StartsWith("--fault: ") && Catch::Contains("it is rank:R,step:S,bit:B"));
    }
    for (const char* text :
         {"rank:-1,step:7,bit:3", "rank:1,step:0,bit:3", "rank:1,step:7,bit:32", "rank:1,step:7,bit:-1",
          "rank:1,step:7,bit:", "rank:1.0,step:7,bit:3", "rank:1,step: 7,bit:3",
          "rank:1,step:99999999999999999999,bit:3", "rank:4294967296,step:1,bit:3"}) {
        INFO(text);
        CHECK_THROWS_WITH(parse_fault(text, "--fault"), Catch::Contains("must be a whole number"));
    }
}

TEST_CASE("a fault that would never be planted is refused") {
    CHECK_NOTHROW(check_fault({1, 20, 0}, 2, 20, "--fault"));
    CHECK_THROWS_WITH(check_fault({2, 20, 0}, 2, 20, "--fault"), Catch::Contains("no rank 2 in a world of 2"));
    CHECK_THROWS_WITH(check_fault({1, 21, 0}, 2, 20, "--fault"), Catch::Contains("step 21 is never reached"));
}

TEST_CASE("one bit of the first weight flips, after that step and on that rank alone") {
    const auto backend = make_cpu_backend({Isa::kScalar, 1});
    ParameterTable table;
    table.add("scale", {20}, {});
    table.add("fc1.weight", {4, 5}, {});
    table.add("fc2.weight", {2, 4}, {});
    const std::vector<float> before(static_cast<std::size_t>(table.flat_elements()), 1.5F);
    for (const int bit : {0, 22, 30, 31}) {
        for (const int rank : {0, 1}) {
            FaultPlanter planter({1, 3, bit}, rank, table, *backend);
            std::vector<float> weights = before;
            for (int64_t step = 1; step <= 5; ++step) {
                StepOutcome outcome;
                outcome.at.update = step;
                planter.updated(outcome, weights.data());
                std::vector<float> expected = before;
                if (rank == 1 && step >= 3) {
                    float& flipped = expected[static_cast<std::size_t>(table[1].offset)];
                    flipped = std::bit_cast<float>(std::bit_cast<uint32_t>(flipped) ^ (1U << bit));
                }
                REQUIRE(std::equal(weights.begin(), weights.end(), expected.begin(), [](float a, float b) {
                    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
                }));
            }
        }
    }
}
