// Learning rates by another trainer's count of steps, and the epochs here that they mean.
#include "explain/their_schedule.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "optim/schedule.hpp"

namespace lockstep {
namespace {

constexpr int64_t kImageNet = 1'281'167;

TEST_CASE("a piecewise rate gives way at the step that tf_cnn_benchmarks changes it at") {
    const PiecewiseRates rates = parse_piecewise_rates("--piecewise_learning_rate_schedule", "1;3;.1;5;.01");
    const TheirSteps steps{kImageNet, 32};
    CHECK(their_piecewise_rate(rates, steps, 0) == 1);
    CHECK(their_piecewise_rate(rates, steps, 120108) == 1);
    CHECK(their_piecewise_rate(rates, steps, 120109) == 0.1);
    CHECK(their_piecewise_rate(rates, steps, 200181) == 0.1);
    CHECK(their_piecewise_rate(rates, steps, 200182) == 0.01);
    CHECK(their_first_step_after(steps, 3) == 120109);
    CHECK(their_first_step_after(steps, 5) == 200182);
}

TEST_CASE("a warm-up has half the rate at the step where theirs has it") {
    const TheirSteps steps{kImageNet, 256};
    CHECK(their_warmup_rate(1, 5, steps, 12511) == 0.5);
    CHECK(their_warmup_rate(1, 5, steps, 0) == 0);
    CHECK(their_warmup_rate(1, 5, steps, 25022) == 1);
}

TEST_CASE("ResNet-50's own rates give way one step later than a piecewise flag would") {
    const TheirSteps steps{kImageNet, 256};
    const PiecewiseRates rates = their_resnet50_rates(256);
    CHECK(their_model_rate(rates, steps, 150136) == Approx(0.128).epsilon(1e-12));
    CHECK(their_model_rate(rates, steps, 150137) == Approx(0.0128).epsilon(1e-12));
    CHECK(their_resnet50_rates(64).values.front() == Approx(0.032).epsilon(1e-12));
}

TEST_CASE("the first update after an epoch here is the one whose epoch time reaches it") {
    const TheirSteps steps{kImageNet, 32};
    // 40,037 updates an epoch, the last of each a short one: three steps more than theirs after three epochs.
    CHECK(our_first_update_after(steps, 3) == 3 * 40037 + 1);
    ScheduleSpec spec;
    spec.batch = 32;
    spec.samples_per_epoch = kImageNet;
    spec.steps_per_epoch = 40037;
    spec.total_steps = 6 * 40037;
    const Schedule schedule(spec);
    for (const double epoch : {3.0, 5.0, 0.5, 2.25}) {
        CAPTURE(epoch);
        const int64_t u = our_first_update_after(steps, epoch);
        CHECK(schedule.epoch_time(u) >= epoch);
        CHECK(schedule.epoch_time(u - 1) < epoch);
        const int64_t apart = u - 1 - their_first_step_after(steps, epoch);  // updates count from 1, steps from 0
        CHECK(apart >= 0);
        CHECK(apart <= 3);
    }
}

TEST_CASE("a piecewise flag that is none says what is wrong with it") {
    const auto parse = [](const char* text) { return parse_piecewise_rates("--x", text); };
    CHECK_THROWS_WITH(parse("1;3"), Catch::Contains("--x=1;3: ends with an epoch"));
    CHECK_THROWS_WITH(parse("1;three;2"), Catch::Contains("\"three\" is no number"));
    CHECK_THROWS_WITH(parse(""), Catch::Contains("is no number"));
    CHECK_THROWS_WITH(parse("1;5;.1;3;.01"), Catch::Contains("epoch 3 does not come after epoch 5"));
    CHECK(parse(".5").values == std::vector<double>{0.5});
}

}  // namespace
}  // namespace lockstep
