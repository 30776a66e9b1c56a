// The course of each schedule, update by update: against formulas, and against rates that published programs print.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "optim/schedule_runs.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("steps drop the rate with the first update at or behind a border") {
    // ResNet-50's kind of schedule: a factor each 30 epochs, 5005 steps an epoch.
    ScheduleSpec spec = run_of("step", 1'281'167, 256, 90);
    spec.lr = 0.128;
    spec.every_epochs = 30;
    const Schedule schedule(spec);
    CHECK(schedule.lr(1) == 0.128F);
    CHECK(schedule.lr(150'150) == 0.128F);                           // 30 * 5005: the last update of epoch 29
    CHECK(schedule.lr(150'151) == static_cast<float>(0.128 * 0.1));  // the first of epoch 30
    CHECK(schedule.lr(300'301) == static_cast<float>(0.128 * (0.1 * 0.1)));
    CHECK_FALSE(schedule.knows_its_end());
}

TEST_CASE("a step need not fall on an epoch's border") {
    ScheduleSpec spec = run_of("step", 10, 4, 4);  // epoch times 0, .4, .8, 1, 1.4, 1.8 …
    spec.lr = 1;
    spec.every_epochs = 0.75;
    spec.factor = 0.5;
    const Schedule schedule(spec);
    const float expected[] = {1, 1, 0.5F, 0.5F, 0.5F, 0.25F};
    for (int u = 1; u <= 6; ++u) CHECK(schedule.lr(u) == expected[u - 1]);
}

TEST_CASE("linear goes from lr at its first update to end behind its last") {
    ScheduleSpec spec = run_of("linear", 100, 10, 1);
    spec.lr = 1;
    spec.end = 0.5;
    const Schedule schedule(spec);
    CHECK(schedule.lr(1) == 1.0F);
    CHECK(schedule.lr(2) == static_cast<float>(0.5 + 0.5 * (1 - 0.1)));
    CHECK(schedule.lr(6) == 0.75F);
    CHECK(schedule.lr(11) == 0.5F);  // the update after the last one
    CHECK(schedule.lr(50) == 0.5F);
    CHECK(schedule.knows_its_end());
}

TEST_CASE("cosine falls by half a wave") {
    ScheduleSpec spec = run_of("cosine", 100, 10, 1);
    spec.lr = 0.8;
    spec.end = 0.2;
    const Schedule schedule(spec);
    CHECK(schedule.lr(1) == 0.8F);
    CHECK(std::fabs(schedule.lr_double(6) - 0.5) < 1e-15);
    // A third of the way cos is 1/2: 0.2 + 0.6 * 1.5 / 2 = 0.65.
    ScheduleSpec thirds = run_of("cosine", 30, 10, 1);
    thirds.lr = 0.8;
    thirds.end = 0.2;
    CHECK(std::fabs(Schedule(thirds).lr_double(2) - 0.65) < 1e-15);
    CHECK(Schedule(thirds).lr(4) == 0.2F);
}

TEST_CASE("where `steps` ends inside an epoch, cosine ends there") {
    ScheduleSpec spec = run_of("linear", 100, 10, 1);
    spec.lr = 1;
    spec.total_steps = 14;  // E = epoch time of update 15 = 1.4
    const Schedule schedule(spec);
    CHECK(std::fabs(schedule.lr_double(8) - 0.5) < 1e-15);  // x = 0.7
    CHECK(schedule.lr(15) == 0.0F);
}

TEST_CASE("piecewise: the value of an update is that behind the boundaries at or before its epoch time") {
    ScheduleSpec spec = run_of("piecewise", 10, 4, 3);  // epoch times 0, .4, .8, 1, 1.4, 1.8, 2 …
    spec.boundaries = {0.4, 1.5, 1.5, 2};
    spec.values = {5, 1, 7, 3, 2};
    const Schedule schedule(spec);
    const float expected[] = {5, 1, 1, 1, 1, 3, 2, 2, 2};
    for (int u = 1; u <= 9; ++u) CHECK(schedule.lr(u) == expected[u - 1]);
    CHECK(schedule.piecewise_constant());
    CHECK_FALSE(schedule.knows_its_end());
    CHECK(schedule.jumps(5) == 1);
    CHECK(schedule.jumps(6) == 3);
}

TEST_CASE("1;3;.1;5;.01 at batch 32 on 1,281,167 samples falls with the first updates of epochs 3 and 5") {
    // tf_cnn_benchmarks counts an epoch as 40036.46875 steps and changes the rate with its steps 120109 and 200182,
    // counted from 0: updates 120110 and 200183. Here an epoch has whole steps, the last one short: a fraction of a
    // step later with each epoch; or whole ones alone, that much earlier.
    ScheduleSpec spec = run_of("piecewise", 1'281'167, 32, 6);
    spec.boundaries = {3, 5};
    spec.values = {1, 0.1, 0.01};
    const Schedule keep(spec), drop(dropping(spec, 6));
    for (const auto& [schedule, per_epoch] : {std::pair{keep, int64_t{40'037}}, std::pair{drop, int64_t{40'036}}}) {
        CHECK(schedule.lr(3 * per_epoch) == 1.0F);
        CHECK(schedule.lr(3 * per_epoch + 1) == 0.1F);
        CHECK(schedule.lr(5 * per_epoch) == 0.1F);
        CHECK(schedule.lr(5 * per_epoch + 1) == 0.01F);
        CHECK(std::abs(3 * per_epoch + 1 - 120'110) <= 3);
        CHECK(std::abs(5 * per_epoch + 1 - 200'183) <= 5);
    }
}

TEST_CASE("ResNet-50's rates at batch 256: .128 for 30 epochs behind the warm-up, then a tenth of it") {
    // There: step 150136 has .128 and 150137 has .0128; 30 epochs are 150136.8 steps of 256 samples.
    ScheduleSpec spec = run_of("piecewise", 1'281'167, 256, 90);
    spec.lr = 0.128;
    spec.warmup_epochs = 5;
    spec.boundaries = {30, 60, 80, 90};
    spec.values = {0.128, 0.0128, 0.00128, 0.000128, 0.0000128};
    const Schedule schedule(spec);
    CHECK(schedule.lr(12'513) == static_cast<float>(0.128 * 12'513 / 25'025));
    CHECK(schedule.lr(25'025) == 0.128F);
    CHECK(schedule.lr(30 * 5'005) == 0.128F);
    CHECK(schedule.lr(30 * 5'005 + 1) == 0.0128F);
    CHECK(std::abs(30 * 5'005 + 1 - 150'138) <= 30);
    CHECK(schedule.lr(90 * 5'005) == 0.000128F);
}

TEST_CASE("exponential: lr rate^(x / every_epochs), as a staircase by whole powers") {
    ScheduleSpec spec = run_of("exponential", 100, 10, 4);
    spec.lr = 0.5;
    spec.rate = 0.25;
    spec.every_epochs = 2;
    const Schedule smooth(spec);
    CHECK(smooth.lr(1) == 0.5F);
    CHECK(std::fabs(smooth.lr_double(11) - 0.25) < 1e-15);
    CHECK(std::fabs(smooth.lr_double(6) - 0.5 * std::pow(0.25, 0.25)) < 1e-15);
    CHECK(smooth.lr(21) == 0.125F);
    CHECK_FALSE(smooth.piecewise_constant());
    CHECK_FALSE(smooth.knows_its_end());
    spec.staircase = true;
    const Schedule stairs(spec);
    CHECK(stairs.lr(20) == 0.5F);
    CHECK(stairs.lr(21) == 0.125F);
    CHECK(stairs.lr(40) == 0.125F);
    CHECK(stairs.lr(41) == 0.03125F);
    CHECK(stairs.piecewise_constant());
    spec.staircase = false;
    spec.rate = 1e30;
    CHECK_THROWS_WITH(Schedule(spec), Catch::Contains("schedule.rate = 1e+30") && Catch::Contains("fp32 cannot hold"));
}

TEST_CASE("poly: end + (lr - end)(1 - p)^power, with power 1 linear's bits") {
    ScheduleSpec spec = run_of("poly", 100, 10, 1);
    spec.lr = 1;
    spec.end = 0.5;
    spec.power = 2;
    CHECK(Schedule(spec).lr(6) == 0.625F);  // 0.5 + 0.5 / 4
    CHECK(Schedule(spec).lr(11) == 0.5F);
    CHECK(Schedule(spec).knows_its_end());
    spec.power = 0.5;
    CHECK(std::fabs(Schedule(spec).lr_double(6) - (0.5 + 0.5 * std::sqrt(0.5))) < 1e-15);
    CHECK(Schedule(spec).lr(11) == 0.5F);
    spec.power = 1;
    spec.warmup_epochs = 0.3;
    ScheduleSpec linear = spec;
    linear.name = "linear";
    for (int u = 1; u <= 12; ++u) CHECK(Schedule(spec).lr_double(u) == Schedule(linear).lr_double(u));
}
