// The optimizers against their published formulas, worked out anew in fp64: PyTorch's for a constant learning rate, the
// papers' for lars and lamb, and TensorFlow's rmsprop on a model of two weights whose losses are known.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "optim/update.hpp"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

/// Updates the weights w by the gradient g; `u` counts from 1, `slots` start at 0.
using Formula = std::function<void(Numbers& w, const Numbers& g, Numbers (&slots)[2], int u)>;

constexpr double kRate = 0.02;
constexpr std::size_t kWeights = 37;

double norm(const Numbers& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
}

OptimizerSpec spec_of(const std::string& name) {
    OptimizerSpec spec;
    spec.name = name;
    spec.weight_decay = 0.03;
    return spec;
}

/// Both ways for 12 steps from the same start; the largest difference of any weight, next to a mean change of order
/// 0.1.
double worst_difference(const OptimizerSpec& spec, const Formula& formula, double initial = 0) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const auto backend = make_cpu_backend({Isa::kAuto, 1});
    Update update(spec, {{.offset = 0, .count = kWeights}}, kWeights, *backend);
    std::vector<float> weights(kWeights), gradient(kWeights);
    Numbers expected, g(kWeights), slots[2] = {Numbers(kWeights, initial), Numbers(kWeights)};
    for (float& w : weights) w = normal(random);
    expected.assign(weights.begin(), weights.end());
    const Numbers start = expected;
    for (int u = 1; u <= 12; ++u) {
        for (std::size_t i = 0; i < kWeights; ++i) g[i] = gradient[i] = 0.3F * normal(random);
        update.apply(gradient.data(), 1, 1, u, static_cast<float>(kRate), kRate, weights.data());
        formula(expected, g, slots, u);
    }
    double worst = 0, moved = 0;
    for (std::size_t i = 0; i < kWeights; ++i) {
        worst = std::max(worst, std::fabs(weights[i] - expected[i]));
        moved = std::max(moved, std::fabs(expected[i] - start[i]));
    }
    REQUIRE(moved > 0.01);
    return worst;
}

void coupled_decay(const Numbers& w, Numbers& g) {
    for (std::size_t i = 0; i < kWeights; ++i) g[i] += 0.03 * w[i];
}

Numbers adam_direction(const Numbers& g, Numbers (&slots)[2], int u, double epsilon) {
    Numbers direction(kWeights);
    for (std::size_t i = 0; i < kWeights; ++i) {
        slots[0][i] = 0.9 * slots[0][i] + 0.1 * g[i];
        slots[1][i] = 0.999 * slots[1][i] + 0.001 * g[i] * g[i];
        const double m = slots[0][i] / (1 - std::pow(0.9, u)), v = slots[1][i] / (1 - std::pow(0.999, u));
        direction[i] = m / (std::sqrt(v) + epsilon);
    }
    return direction;
}

/// PyTorch's RMSprop (momentum_buffer included), and with epsilon under the root.
Formula rmsprop(double momentum, double epsilon, bool inside) {
    return [=](Numbers& w, Numbers g, Numbers(&slots)[2], int) {
        coupled_decay(w, g);
        for (std::size_t i = 0; i < kWeights; ++i) {
            slots[0][i] = 0.9 * slots[0][i] + 0.1 * g[i] * g[i];
            const double root = inside ? std::sqrt(slots[0][i] + epsilon) : std::sqrt(slots[0][i]) + epsilon;
            slots[1][i] = momentum * slots[1][i] + g[i] / root;
            w[i] -= kRate * slots[1][i];
        }
    };
}

}  // namespace

TEST_CASE("momentum, nesterov, adam and adamw are PyTorch's") {
    const auto sgd = [](bool nesterov) {
        return [=](Numbers& w, Numbers g, Numbers(&slots)[2], int) {
            coupled_decay(w, g);
            for (std::size_t i = 0; i < kWeights; ++i) {
                slots[0][i] = 0.9 * slots[0][i] + g[i];
                w[i] -= kRate * (nesterov ? g[i] + 0.9 * slots[0][i] : slots[0][i]);
            }
        };
    };
    CHECK(worst_difference(spec_of("momentum"), sgd(false)) < 1e-6);
    CHECK(worst_difference(spec_of("nesterov"), sgd(true)) < 1e-6);
    CHECK(worst_difference(spec_of("momentum"), sgd(true)) > 1e-3);  // the comparison can fail
    const auto adam = [](bool decoupled) {
        return [=](Numbers& w, Numbers g, Numbers(&slots)[2], int u) {
            if (!decoupled) coupled_decay(w, g);
            const Numbers direction = adam_direction(g, slots, u, 1e-8);
            for (std::size_t i = 0; i < kWeights; ++i) {
                if (decoupled) w[i] *= 1 - kRate * 0.03;
                w[i] -= kRate * direction[i];
            }
        };
    };
    CHECK(worst_difference(spec_of("adam"), adam(false)) < 3e-6);
    CHECK(worst_difference(spec_of("adamw"), adam(true)) < 3e-6);
    CHECK(worst_difference(spec_of("adam"), adam(true)) > 1e-4);
}

TEST_CASE("adagrad is PyTorch's, and TensorFlow's where the sum starts at 0.1") {
    for (const double initial : {0.0, 0.1}) {
        OptimizerSpec spec = spec_of("adagrad");
        spec.initial = initial;
        const Formula adagrad = [](Numbers& w, Numbers g, Numbers(&slots)[2], int) {
            coupled_decay(w, g);
            for (std::size_t i = 0; i < kWeights; ++i) {
                slots[0][i] += g[i] * g[i];
                w[i] -= kRate * g[i] / (std::sqrt(slots[0][i]) + 1e-8);
            }
        };
        CHECK(worst_difference(spec, adagrad, initial) < 1e-6);
        CHECK(worst_difference(spec, adagrad, 0.1 - initial) > 1e-3);
    }
}

TEST_CASE("rmsprop is PyTorch's, with and without momentum, with epsilon behind the root and under it") {
    for (const double momentum : {0.0, 0.8}) {
        for (const bool inside : {false, true}) {
            OptimizerSpec spec = spec_of("rmsprop");
            spec.rmsprop_momentum = momentum;
            spec.epsilon = 0.01;
            spec.epsilon_inside = inside;
            CAPTURE(momentum, inside);
            CHECK(worst_difference(spec, rmsprop(momentum, 0.01, inside)) < 3e-6);
            CHECK(worst_difference(spec, rmsprop(momentum, 0.01, !inside)) > 1e-3);
        }
    }
}

TEST_CASE("lars scales a tensor's decayed gradient by trust |w| / (|g| + wd |w| + epsilon)") {
    OptimizerSpec spec = spec_of("lars");
    spec.trust = 0.5;
    const Formula lars = [](Numbers& w, Numbers g, Numbers(&slots)[2], int) {
        const double ratio = 0.5 * norm(w) / (norm(g) + 0.03 * norm(w) + 1e-8);
        coupled_decay(w, g);
        for (std::size_t i = 0; i < kWeights; ++i) {
            slots[0][i] = 0.9 * slots[0][i] + ratio * g[i];
            w[i] -= kRate * slots[0][i];
        }
    };
    CHECK(worst_difference(spec, lars) < 2e-6);
    spec.trust = 0.49;
    CHECK(worst_difference(spec, lars) > 1e-3);
}

TEST_CASE("lamb takes adam's direction with decay at the length of the weights") {
    const Formula lamb = [](Numbers& w, const Numbers& g, Numbers(&slots)[2], int u) {
        Numbers direction = adam_direction(g, slots, u, 1e-8);
        for (std::size_t i = 0; i < kWeights; ++i) direction[i] += 0.03 * w[i];
        const double ratio = norm(w) / norm(direction);
        for (std::size_t i = 0; i < kWeights; ++i) w[i] -= kRate * ratio * direction[i];
    };
    CHECK(worst_difference(spec_of("lamb"), lamb) < 2e-6);
    OptimizerSpec spec = spec_of("lamb");
    spec.weight_decay = 0;
    CHECK(worst_difference(spec, lamb) > 1e-4);
}

TEST_CASE("what does not decay does not adapt: lars is momentum there, and lamb adam") {
    for (const auto& [name, plain] : {std::pair{"lars", "momentum"}, std::pair{"lamb", "adam"}}) {
        const auto trained = [](OptimizerSpec spec, bool is_weight) {
            spec.decay = "weights";
            spec.trust = 0.01;
            const auto backend = make_cpu_backend({Isa::kAuto, 1});
            Update update(spec, {{.offset = 0, .count = 3, .is_weight = is_weight}}, 3, *backend);
            std::vector<float> weights{1, 2, 3};
            const std::vector<float> gradient{0.5F, -0.25F, 0.125F};
            for (int u = 1; u <= 3; ++u) update.apply(gradient.data(), 1, 1, u, 0.1F, 0.1, weights.data());
            return weights;
        };
        CHECK(trained(spec_of(name), false) == trained(spec_of(plain), false));
        CHECK(trained(spec_of(name), true) != trained(spec_of(plain), true));
    }
}

TEST_CASE("a tensor of zeros, or a gradient of zeros, goes at the plain rate") {
    CHECK(lars_ratio(spec_of("lars"), 0, 1) == 1.0F);
    CHECK(lars_ratio(spec_of("lars"), 1, 0) == 1.0F);
    CHECK(lamb_rate(0.5, 0, 1) == 0.5F);
    CHECK(lamb_rate(0.5, 1, 0) == 0.5F);
    CHECK(lamb_rate(0.5, 3, 2) == 0.75F);
}

// Loss m A B + (A² + B²) / 32 on batches of mean m = 0.5, 4.5, 8.5, 12.5, from A = 1, B = 2, learning rate 1/16: what
// TensorFlow's benchmarks check their own optimizers with, and the losses that they expect.
TEST_CASE("a model of two weights has TensorFlow's losses under sgd, nesterov and rmsprop") {
    struct Case {
        OptimizerSpec spec;
        Numbers losses;
    };
    OptimizerSpec sgd, nesterov, rmsprop;
    sgd.name = "sgd";
    nesterov.name = "nesterov";
    rmsprop.name = "rmsprop";
    rmsprop.rmsprop_momentum = 0.9;
    rmsprop.initial = 1;
    rmsprop.epsilon = 1;
    rmsprop.epsilon_inside = true;
    for (const Case& c : {Case{sgd, {1.15625, 8.38563776016, 5.53226187293, -9.5854835149}},
                          Case{nesterov, {1.15625, 7.71236471653, -2.52466576228, -36.7086006412}},
                          Case{rmsprop, {1.15625, 8.60833416331, 11.3735971207, 7.01656766308}}}) {
        CAPTURE(c.spec.name);
        const auto backend = make_cpu_backend({Isa::kAuto, 1});
        Update update(c.spec, {{.offset = 0, .count = 2}}, 2, *backend);
        float weights[] = {1, 2};
        for (int u = 1; u <= 4; ++u) {
            const double m = 4 * u - 3.5, a = weights[0], b = weights[1];
            const double loss = m * a * b + (a * a + b * b) / 32;
            CHECK(std::fabs(loss - c.losses[static_cast<std::size_t>(u - 1)]) < 2e-5);
            const float gradient[] = {static_cast<float>(m * b + a / 16), static_cast<float>(m * a + b / 16)};
            update.apply(gradient, 1, 1, u, 1.0F / 16, 1.0 / 16, weights);
        }
    }
}

}  // namespace lockstep
