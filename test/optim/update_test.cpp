#include "optim/update.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

constexpr const char* kAll[] = {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};

OptimizerSpec optimizer(const std::string& name) {
    OptimizerSpec spec;
    spec.name = name;
    return spec;
}

/// One optimizer on its own flat arrays.
class Trial {
  public:
    Trial(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, std::vector<float> weights, CpuOptions cpu = {})
        : backend_(make_cpu_backend(cpu)),
          count_(static_cast<int64_t>(weights.size())),
          update_(spec, std::move(tensors), count_, *backend_),
          weights_(backend_->allocate(weights.size() * sizeof(float))),
          gradient_(backend_->allocate(weights.size() * sizeof(float))) {
        std::memcpy(weights_->data(), weights.data(), weights.size() * sizeof(float));
    }
    UpdateResult step(const std::vector<float>& gradient, int64_t b, double lr, float loss_sum = 1) {
        std::memcpy(gradient_->data(), gradient.data(), gradient.size() * sizeof(float));
        return update_.apply(gradient_->floats(), loss_sum, b, ++updates_, static_cast<float>(lr), lr,
                             weights_->floats());
    }
    std::vector<float> weights() { return {weights_->floats(), weights_->floats() + count_}; }
    std::vector<float> everything() {
        std::vector<float> all = weights();
        for (const Update::Slot& slot : update_.slots()) all.insert(all.end(), slot.values, slot.values + count_);
        return all;
    }
    Update& update() { return update_; }

  private:
    std::unique_ptr<Backend> backend_;
    int64_t count_;
    Update update_;
    std::unique_ptr<Buffer> weights_, gradient_;
    int64_t updates_ = 0;
};

std::vector<UpdateTensor> one_tensor(int64_t count) {
    return {{.offset = 0, .count = count, .is_weight = true}};
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> random_values(std::size_t n, unsigned seed, float scale) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
}

}  // namespace

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

}  // namespace lockstep
