// In its steady state the training loop allocates nothing: not the step, not the reader threads. A long run then cannot
// slow down, fragment memory or fail for want of it halfway.
#include <catch2/catch.hpp>

#include "core/log.hpp"
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

TEST_CASE("between its lines the whole training loop allocates nothing") {
    set_log(LogLevel::kQuiet, false);
    LoadedConfig loaded = config_of(steady_job("mlp", "momentum"));
    loaded.config.train.steps = 60;
    loaded.config.log.every = 50;
    loaded.config.eval.every_epochs = 0;
    loaded.config.device.threads = 1;
    const DataSplits data = open_data(loaded.config);
    std::vector<int64_t> allocated(60);  // by the process, when step i + 1 begins
    std::size_t step = 0;
    TrainOptions options;
    options.progress.style = ProgressStyle::kNone;
    options.stop_requested = [&] {
        allocated.at(step++) = allocations_of_process;
        return false;
    };
    train_on(*make_single_communicator(), loaded, data, options);
    REQUIRE(step == 60);
    CHECK(allocated[49] == allocated[4]);
    CHECK(allocated[50] > allocated[49]);  // the line of step 50
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
