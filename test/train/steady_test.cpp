// In its steady state the training loop allocates nothing: not the step, not the reader threads. A long run then cannot
// slow down, fragment memory or fail for want of it halfway.
#include <catch2/catch.hpp>

#include "train/steady_steps.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

int64_t allocations(const Job& job, int64_t threads, int64_t first, int64_t last) {
    const auto alone = make_single_communicator();
    return allocations_of_steps(*alone, job, {1, {threads}}, first, last);
}

}  // namespace

TEST_CASE("the counter sees what a step would allocate") {
    const AllocationCounter counter;
    const std::vector<int> something(3);
    REQUIRE(counter.count() == 1);
}

TEST_CASE("steps 5 to 40 of one rank allocate nothing") {
    for (const char* model : {"mlp", "lenet"}) {
        for (const int64_t threads : {1, 2}) {
            CAPTURE(model, threads);
            CHECK(allocations(steady_job(model, "momentum"), threads, 4, 40) == 0);
        }
    }
    CHECK(allocations(steady_job("mlp", "adam"), 1, 4, 40) == 0);
}

TEST_CASE("short last batches and every epoch's new order allocate nothing once each size has been seen") {
    for (const char* layout : {"batch", "epoch"}) {
        for (const char* shuffle : {"full", "block"}) {
            Job job = steady_job("mlp", "sgd");
            job.samples = 403;  // 9 steps an epoch, the last of 19
            job.layout = layout;
            job.shuffle = shuffle;
            CAPTURE(layout, shuffle);
            CHECK(allocations(job, 1, 9, 40) == 0);
        }
    }
}
