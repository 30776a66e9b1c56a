// Each optimizer's first steps worked out by hand, and the order of what happens to a gradient before them.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "optim/update_trial.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("sgd divides the sum by the samples really used, once") {
    // G = 5, b = 4: g = 1.25, w = 1 - 0.5 * 1.25.
    Trial average(optimizer("sgd"), one_tensor(1), {1});
    average.step({5}, 4, 0.5);
    CHECK(average.weights() == std::vector<float>{0.375F});
    // reduce.op = "sum": g = 5.
    OptimizerSpec spec = optimizer("sgd");
    spec.average = false;
    Trial sum(spec, one_tensor(1), {1});
    sum.step({5}, 4, 0.5);
    CHECK(sum.weights() == std::vector<float>{-1.5F});
}

TEST_CASE("momentum v = m v + g, w -= lr v") {
    // m = 0.5, lr = 0.25, g = 1, 2: v = 1, 2.5; w = 0 - 0.25 - 0.625.
    OptimizerSpec spec = optimizer("momentum");
    spec.momentum = 0.5;
    Trial trial(spec, one_tensor(1), {0});
    trial.step({1}, 1, 0.25);
    CHECK(trial.weights()[0] == -0.25F);
    trial.step({2}, 1, 0.25);
    CHECK(trial.everything() == std::vector<float>{-0.875F, 2.5F});
}

TEST_CASE("nesterov looks ahead: w -= lr (g + m v)") {
    // m = 0.5, lr = 0.25, g = 1, 2: v = 1, 2.5; steps 1 + 0.5 = 1.5 and 2 + 1.25 = 3.25; w = -0.375 - 0.8125.
    OptimizerSpec spec = optimizer("nesterov");
    spec.momentum = 0.5;
    Trial trial(spec, one_tensor(1), {0});
    trial.step({1}, 1, 0.25);
    CHECK(trial.weights()[0] == -0.375F);
    trial.step({2}, 1, 0.25);
    CHECK(trial.everything() == std::vector<float>{-1.1875F, 2.5F});
}

TEST_CASE("a gradient that is surely finite is not read to find out, a loss is") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Trial trial(optimizer("sgd"), one_tensor(2), {1, 2});
    CHECK_FALSE(trial.step({nan, 1}, 1, 1).finite);
    CHECK_FALSE(trial.step({1, 1}, 1, 1, nan, true).finite);
    CHECK(trial.weights() == std::vector<float>{1, 2});
    CHECK(trial.step({nan, 1}, 1, 1, 1, true).finite);  // the caller's word
}

TEST_CASE("adam's first step on w = 1, g = 1 with lr 0.1 gives 0.9") {
    // m / (1 - beta1) = g and v / (1 - beta2) = g²: the step is lr whatever g is.
    Trial trial(optimizer("adam"), one_tensor(1), {1});
    trial.step({1}, 1, 0.1);
    CHECK(trial.weights()[0] == 0.9F);
}

TEST_CASE("adam corrects the bias of both averages by the number of the update") {
    // beta1 = 0.5, beta2 = 0.75, epsilon = 0, lr = 1, g = 4, then 0:
    //   u = 1: m = 2, v = 4; m^ = 4, v^ = 16; w = 0 - 4/4 = -1
    //   u = 2: m = 1, v = 3; m^ = 1 / 0.75 = 4/3, v^ = 3 / (1 - 0.5625) = 48/7; w = -1 - (4/3) / sqrt(48/7)
    OptimizerSpec spec = optimizer("adam");
    spec.beta1 = 0.5;
    spec.beta2 = 0.75;
    spec.epsilon = 0;
    Trial trial(spec, one_tensor(1), {0});
    trial.step({4}, 1, 1.0);
    CHECK(trial.everything() == std::vector<float>{-1, 2, 4});
    trial.step({0}, 1, 1.0);
    CHECK(trial.everything()[1] == 1.0F);
    CHECK(trial.everything()[2] == 3.0F);
    CHECK(std::fabs(trial.weights()[0] - (-1 - 4.0 / 3 / std::sqrt(48.0 / 7))) < 2e-7);
}

TEST_CASE("adamw shrinks the weights by 1 - lr wd beside adam, adam adds wd w to the gradient") {
    // w = 2, g = 0, wd = 0.5, lr = 0.25. adamw: 2 * (1 - 0.125) - 0 = 1.75. adam: g = 1, first step lr: 2 - 0.25 = 1.75
    // as well; with w = 4: adamw 3.5, adam 3.75.
    for (const auto& [name, expected] : {std::pair{"adamw", 3.5F}, std::pair{"adam", 3.75F}}) {
        OptimizerSpec spec = optimizer(name);
        spec.weight_decay = 0.5;
        Trial trial(spec, one_tensor(1), {4});
        trial.step({0}, 1, 0.25);
        CHECK(trial.weights()[0] == expected);
    }
}

TEST_CASE("gradients (3,0) and (0,4), mean (1.5,2), clipped at norm 1 give (0.6,0.8)") {
    OptimizerSpec spec = optimizer("sgd");
    spec.clip_norm = 1;
    Trial trial(spec, one_tensor(2), {0, 0});
    const UpdateResult result = trial.step({3, 4}, 2, 1.0);
    CHECK(result.grad_norm == 2.5F);
    CHECK(trial.weights() == std::vector<float>{-0.6F, -0.8F});
}

TEST_CASE("a norm at the limit is not clipped, and no norm is computed unless asked for") {
    OptimizerSpec spec = optimizer("sgd");
    spec.clip_norm = 5;
    Trial trial(spec, one_tensor(2), {0, 0});
    CHECK(trial.step({3, 4}, 1, 1.0).grad_norm == 5.0F);
    CHECK(trial.weights() == std::vector<float>{-3, -4});

    Trial silent(optimizer("sgd"), one_tensor(2), {0, 0});
    CHECK_FALSE(silent.step({3, 4}, 1, 1.0).grad_norm.has_value());
    spec.clip_norm = 0;
    spec.report_norm = true;
    Trial reporting(spec, one_tensor(2), {0, 0});
    CHECK(reporting.step({3, 4}, 1, 1.0).grad_norm == 5.0F);
}

TEST_CASE("the norm is taken over all tensors, gaps between them left out") {
    OptimizerSpec spec = optimizer("sgd");
    spec.report_norm = true;
    std::vector<float> gradient(17, 100.0F);
    gradient[0] = 3;
    gradient[16] = 4;
    Trial trial(spec, {{.offset = 0, .count = 1}, {.offset = 16, .count = 1}}, std::vector<float>(17, 0.0F));
    CHECK(trial.step(gradient, 1, 1.0).grad_norm == 5.0F);
    CHECK(trial.weights()[1] == 0.0F);
}

TEST_CASE("l2 counts in the norm, weight decay comes after clipping") {
    // w = 3, G = 0. l2 = 1: g = 3, norm 3, clipped at 1: g = 1, w = 3 - 1.
    OptimizerSpec spec = optimizer("sgd");
    spec.clip_norm = 1;
    spec.l2 = 1;
    Trial with_l2(spec, one_tensor(1), {3});
    CHECK(with_l2.step({0}, 1, 1.0).grad_norm == 3.0F);
    CHECK(with_l2.weights()[0] == 2.0F);
    // weight decay 1: norm 0, nothing to clip, g = 3, w = 0.
    spec.l2 = 0;
    spec.weight_decay = 1;
    Trial with_decay(spec, one_tensor(1), {3});
    CHECK(with_decay.step({0}, 1, 1.0).grad_norm == 0.0F);
    CHECK(with_decay.weights()[0] == 0.0F);
}

TEST_CASE("decay = weights spares the biases, in l2, coupled and decoupled decay alike") {
    const std::vector<UpdateTensor> tensors{{.offset = 0, .count = 1, .is_weight = true},
                                            {.offset = 16, .count = 1, .is_weight = false}};
    for (const char* name : {"sgd", "adamw"}) {
        for (const bool l2 : {false, true}) {
            OptimizerSpec spec = optimizer(name);
            (l2 ? spec.l2 : spec.weight_decay) = 0.5;
            Trial all(spec, tensors, std::vector<float>(17, 8.0F));
            all.step(std::vector<float>(17, 0.0F), 1, 0.25);
            CHECK(all.weights()[0] != 8.0F);
            CHECK(all.weights()[16] == all.weights()[0]);
            spec.decay = "weights";
            Trial weights_only(spec, tensors, std::vector<float>(17, 8.0F));
            weights_only.step(std::vector<float>(17, 0.0F), 1, 0.25);
            CHECK(weights_only.weights()[0] == all.weights()[0]);
            CHECK(weights_only.weights()[16] == 8.0F);
        }
    }
}
