// What decides no bit of an update, the order in which squares are added, what is left alone where numbers are not
// finite, and the names under which checkpoints keep it.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "optim/update_trial.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a non-finite gradient or loss changes nothing and says so") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    for (const char* name : kAll) {
        OptimizerSpec spec = optimizer(name);
        spec.clip_norm = GENERATE(0.0, 1.0);
        Trial trial(spec, one_tensor(3), {1, 2, 3});
        trial.step({1, 1, 1}, 1, 0.1);
        const std::vector<float> before = trial.everything();
        CHECK_FALSE(trial.step({0, nan, 0}, 1, 0.1).finite);
        CHECK_FALSE(trial.step({0, 0, -inf}, 1, 0.1).finite);
        CHECK_FALSE(trial.step({0, 0, 0}, 1, 0.1, inf).finite);
        CHECK_FALSE(trial.step({0, 0, 0}, 1, 0.1, nan).finite);
        CHECK(same_bytes(trial.everything(), before));
        CHECK(trial.step({0, 0, 0}, 1, 0.1).finite);
    }
}

TEST_CASE("a norm beyond fp32 of a finite gradient clips it to nothing") {
    OptimizerSpec spec = optimizer("sgd");
    spec.clip_norm = 1;
    Trial trial(spec, one_tensor(2), {1, 2});
    const UpdateResult result = trial.step({3e38F, 3e38F}, 1, 0.1);
    CHECK(result.finite);
    CHECK(result.grad_norm == std::numeric_limits<float>::infinity());
    CHECK(trial.weights() == std::vector<float>{1, 2});
}

TEST_CASE("squares are added in the file's order") {
    // (1 + 2^-24)² = 1 + 2 * 2^-24 + 2^-48 is exact in fp64, and its root 1 + 2^-24 a tie that rounds to 1 in fp32. 64
    // more squares of 2^-54 lift it over the tie if they are added up first, and vanish one by one behind the 1.
    // All of them lie in chain 0 or 15, the others are 0.
    constexpr int kWidth = 1280;
    std::vector<float> file(kWidth, 0.0F);
    for (std::size_t k = 0; k < 64; ++k) file[16 * k] = 0x1p-27F;
    file[16 * 64] = 1;
    file[16 * 65] = file[16 * 66] = 0x1p-12F;
    file[16 * 67] = 0x1p-24F;
    std::vector<UpdateTensor> tensors = one_tensor(kWidth);
    std::vector<float> memory(kWidth);
    for (int32_t j = 0; j < kWidth; ++j) {
        tensors[0].file_columns.push_back(kWidth - 1 - j);
        memory[static_cast<std::size_t>(kWidth - 1 - j)] = file[static_cast<std::size_t>(j)];
    }
    OptimizerSpec spec = optimizer("sgd");
    spec.report_norm = true;
    for (const int threads : {1, 3}) {
        const std::vector<float> zeros(kWidth, 0.0F);
        Trial turned(spec, tensors, zeros, {Isa::kAuto, threads});
        CHECK(turned.step(memory, 1, 0.0).grad_norm == 1 + 0x1p-23F);
        // The twin: in the order of memory it is another norm.
        Trial plain(spec, one_tensor(kWidth), zeros, {Isa::kAuto, threads});
        CHECK(plain.step(memory, 1, 0.0).grad_norm == 1.0F);
        CHECK(plain.step(file, 1, 0.0).grad_norm == 1 + 0x1p-23F);
        // With l2 the weights are turned, too: here they are the gradient, which is 0.
        OptimizerSpec with_l2 = spec;
        with_l2.l2 = 1;
        Trial weights(with_l2, tensors, memory, {Isa::kAuto, threads});
        CHECK(weights.step(zeros, 1, 0.0).grad_norm == 1 + 0x1p-23F);
    }
}

TEST_CASE("threads, instruction sets and the cut into tensors decide no bit of an update") {
    constexpr int64_t kCount = 5'003;
    const auto run = [&](const std::string& name, std::vector<UpdateTensor> tensors, CpuOptions cpu) {
        OptimizerSpec spec = optimizer(name);
        spec.weight_decay = 1e-3;
        spec.l2 = 1e-4;
        Trial trial(spec, std::move(tensors), random_values(kCount, 1, 0.1F), cpu);
        for (unsigned u = 0; u < 4; ++u) trial.step(random_values(kCount, 10 + u, 3.0F), 96, 0.05 / (1 + u));
        return trial.everything();
    };
    const std::vector<UpdateTensor> cut{
        {.offset = 0, .count = 17}, {.offset = 17, .count = 4'100}, {.offset = 4'117, .count = 886}};
    for (const std::string name : kAll) {
        const bool adapts = name == "lars" || name == "lamb";  // by each tensor's norms: the cut is the model's there
        const std::vector<float> expected = run(name, one_tensor(kCount), {Isa::kScalar, 1});
        const std::vector<float> expected_cut = adapts ? run(name, cut, {Isa::kScalar, 1}) : expected;
        CHECK(same_bytes(expected_cut, expected) != adapts);
        for (const Isa isa : available_isas()) {
            for (const int threads : {1, 2, 3}) {
                CAPTURE(name, isa_name(isa), threads);
                CHECK(same_bytes(run(name, one_tensor(kCount), {isa, threads}), expected));
                CHECK(same_bytes(run(name, cut, {isa, threads}), expected_cut));
            }
        }
    }
}

TEST_CASE("threads and instruction sets decide no bit of a clipped update, the cut into tensors does") {
    // The norm's blocks begin anew with each tensor, so that it belongs to the model.
    constexpr int64_t kCount = 9'001;
    const auto run = [&](std::vector<UpdateTensor> tensors, CpuOptions cpu) {
        OptimizerSpec spec = optimizer("momentum");
        spec.clip_norm = 0.1;
        Trial trial(spec, std::move(tensors), random_values(kCount, 1, 0.1F), cpu);
        for (unsigned u = 0; u < 3; ++u) trial.step(random_values(kCount, 10 + u, 3.0F), 96, 0.05);
        return trial.everything();
    };
    const std::vector<float> expected = run(one_tensor(kCount), {Isa::kScalar, 1});
    for (const Isa isa : available_isas()) {
        for (const int threads : {1, 2, 3}) {
            CAPTURE(isa_name(isa), threads);
            CHECK(same_bytes(run(one_tensor(kCount), {isa, threads}), expected));
        }
    }
}

TEST_CASE("slots are named as checkpoints name them") {
    const auto names = [](const char* optimizer_name) {
        std::string all;
        Trial trial(optimizer(optimizer_name), one_tensor(1), {0});
        for (const Update::Slot& slot : trial.update().slots()) all += slot.name + " ";
        return all;
    };
    CHECK(names("sgd").empty());
    CHECK(names("momentum") == "momentum ");
    CHECK(names("nesterov") == "momentum ");
    CHECK(names("adam") == "m v ");
    CHECK(names("adamw") == "m v ");
    CHECK(names("adagrad") == "square_sum ");
    CHECK(names("rmsprop") == "mean_square ");
    CHECK(names("lars") == "momentum ");
    CHECK(names("lamb") == "m v ");
    OptimizerSpec spec = optimizer("rmsprop");
    spec.rmsprop_momentum = 0.5;
    Trial with_momentum(spec, one_tensor(1), {0});
    REQUIRE(with_momentum.update().slots().size() == 2);
    CHECK(with_momentum.update().slots()[1].name == "momentum");
}

TEST_CASE("an unknown optimizer or decay is refused by its key") {
    const auto backend = make_cpu_backend({});
    OptimizerSpec spec = optimizer("sgdd");
    CHECK_THROWS_WITH(Update(spec, one_tensor(1), 1, *backend),
                      Catch::Contains("optimizer.name: \"sgdd\" is not one of sgd"));
    spec = optimizer("sgd");
    spec.decay = "biases";
    CHECK_THROWS_WITH(Update(spec, one_tensor(1), 1, *backend), Catch::Contains("optimizer.decay"));
}
