// What holds of every schedule: epoch time, the warm-up in front of it, the falls of a plateau, and what is refused.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "optim/schedule_runs.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("epoch time counts the samples used before an update, the short last batch included") {
    // 10 samples in batches of 4: 4, 4, 2.
    const Schedule schedule(run_of("constant", 10, 4, 2));
    CHECK(schedule.epoch_time(1) == 0.0);
    CHECK(schedule.epoch_time(2) == 0.4);
    CHECK(schedule.epoch_time(3) == 0.8);
    CHECK(schedule.epoch_time(4) == 1.0);
    CHECK(schedule.epoch_time(6) == 1.8);
}

TEST_CASE("epoch time of an epoch that drops its last batch counts only the samples it uses") {
    const Schedule schedule(dropping(run_of("constant", 10, 4, 2), 2));
    CHECK(schedule.epoch_time(2) == 0.5);
    CHECK(schedule.epoch_time(3) == 1.0);
}

TEST_CASE("warm-up rises to lr at update U and takes the place of the schedule") {
    ScheduleSpec spec = run_of("constant", 1003, 100, 3);  // 11 steps an epoch
    spec.lr = 0.4;
    spec.warmup_epochs = 0.5;  // U = floor(5.5 + 0.5) = 6
    const Schedule schedule(spec);
    CHECK(schedule.warmup_updates() == 6);
    CHECK(schedule.lr(1) == static_cast<float>(0.4 * 1.0 / 6.0));
    CHECK(schedule.lr(3) == 0.2F);
    CHECK(schedule.lr(6) == 0.4F);
    CHECK(schedule.lr(7) == 0.4F);
}

TEST_CASE("a warm-up of 5 epochs at batch 256 on 1,281,167 samples is half way at step 12511") {
    ScheduleSpec spec = run_of("constant", 1'281'167, 256, 90);
    spec.lr = 1;
    spec.warmup_epochs = 5;
    const Schedule keep(spec);
    CHECK(keep.warmup_updates() == 25'025);  // 5 * 5005
    CHECK(keep.lr(12'511) == static_cast<float>(12'511.0 / 25'025.0));
    const Schedule drop(dropping(spec, 90));
    CHECK(drop.warmup_updates() == 25'020);  // 5 * 5004
    CHECK(drop.lr(12'511) == static_cast<float>(12'511.0 / 25'020.0));
    CHECK(std::fabs(keep.lr_double(12'511) - 0.5) < 1e-3);
    CHECK(std::fabs(drop.lr_double(12'511) - 0.5) < 1e-3);
}

TEST_CASE("a factor that takes the learning rate beyond fp32 before the last step is refused") {
    ScheduleSpec spec = run_of("step", 10, 4, 2);
    spec.lr = 1;
    spec.factor = 1e30;
    spec.every_epochs = 1;
    CHECK_NOTHROW(Schedule(spec));
    ++spec.total_steps;
    CHECK_THROWS_WITH(Schedule(spec), "schedule.factor = 1e+30: the learning rate of step " +
                                          std::to_string(spec.total_steps) + " would be 1e+60, which fp32 cannot hold");
}

TEST_CASE("linear after a warm-up starts at lr with the update behind it") {
    ScheduleSpec spec = run_of("linear", 100, 10, 2);
    spec.lr = 1;
    spec.warmup_epochs = 1;  // U = 10, w = 1, E = 2
    const Schedule schedule(spec);
    CHECK(schedule.lr(10) == 1.0F);
    CHECK(schedule.lr(11) == 1.0F);
    CHECK(schedule.lr(16) == 0.5F);
    CHECK(schedule.lr(20) == static_cast<float>(1 - 0.9));
}

TEST_CASE("a run that ends within its warm-up has finite rates throughout") {
    for (const char* name : {"cosine", "linear"}) {
        ScheduleSpec spec = run_of(name, 100, 10, 1);
        spec.lr = 1;
        spec.end = 0.25;
        spec.warmup_epochs = 1;
        const Schedule schedule(spec);
        CHECK(schedule.lr(10) == 1.0F);
        CHECK(schedule.lr(11) == 0.25F);
    }
}

TEST_CASE("plateau: lr factor^falls down to min_lr, behind the warm-up") {
    ScheduleSpec spec = run_of("plateau", 100, 10, 1);
    spec.lr = 0.5;
    spec.factor = 0.25;
    spec.min_lr = 0.0625;
    spec.warmup_epochs = 0.2;
    Schedule schedule(spec);
    CHECK(schedule.lr(1) == 0.25F);
    CHECK(schedule.lr(3) == 0.5F);
    schedule.set_drops(1);
    CHECK(schedule.lr(1) == 0.25F);
    CHECK(schedule.lr(9) == 0.125F);
    schedule.set_drops(2);
    CHECK(schedule.lr(9) == 0.0625F);
    spec.min_lr = 0.75;  // above lr: never lower, never higher
    Schedule low(spec);
    low.set_drops(3);
    CHECK(low.lr(9) == 0.5F);
    spec.factor = 1.5;
    CHECK_THROWS_WITH(Schedule(spec), Catch::Contains("plateau lowers the rate"));
}

TEST_CASE("values that do not go with boundaries, and boundaries that do not ascend, are refused") {
    ScheduleSpec spec = run_of("piecewise", 100, 10, 1);
    spec.boundaries = {1, 2};
    spec.values = {1, 2};
    CHECK_THROWS_WITH(Schedule(spec), Catch::Contains("one more entry than schedule.boundaries, got 2 and 2"));
    spec.values = {1, 2, 3};
    CHECK_NOTHROW(Schedule(spec));
    spec.boundaries = {2, 1};
    CHECK_THROWS_WITH(Schedule(spec), Catch::Contains("must ascend"));
}

TEST_CASE("an unknown schedule is refused by its key") {
    const ScheduleSpec spec = run_of("zigzag", 100, 10, 1);
    CHECK_THROWS_WITH(Schedule(spec), Catch::Contains("schedule.name: \"zigzag\" is not one of"));
}
