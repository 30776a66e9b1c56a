// Every optimizer's update and the sum of squares behind clipping: the reference's bytes on every backend; the
// reference itself against steps computed by hand.
#include <catch2/catch.hpp>
#include <cmath>

#include "backend/cpu/reference.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd,     OptimizerKind::kMomentum, OptimizerKind::kNesterov,
                                    OptimizerKind::kAdam,    OptimizerKind::kAdamW,    OptimizerKind::kAdagrad,
                                    OptimizerKind::kRmsprop, OptimizerKind::kLars,     OptimizerKind::kRmspropMomentum,
                                    OptimizerKind::kLamb};

UpdateParams random_params(Random& random, OptimizerKind kind) {
    UpdateParams p;
    p.kind = kind;
    p.divisor = random.in(0, 1) == 0 ? 1.0F : static_cast<float>(random.in(2, 200));
    p.clip_active = random.in(0, 1) == 0;
    p.clip = 0.37F;
    p.l2 = random.in(0, 1) == 0 ? 0.0F : 1e-3F;
    p.weight_decay = random.in(0, 1) == 0 ? 0.0F : 5e-2F;
    p.lr = 0.013F, p.momentum = 0.9F, p.beta1 = 0.9F, p.beta2 = 0.999F, p.epsilon = 1e-8F;
    p.one_minus_beta1 = static_cast<float>(1.0 - 0.9), p.one_minus_beta2 = static_cast<float>(1.0 - 0.999);
    const int u = random.in(1, 50);
    p.correction1 = static_cast<float>(1.0 - std::pow(0.9, u)),
    p.correction2 = static_cast<float>(1.0 - std::pow(0.999, u));
    p.decay_factor = static_cast<float>(1.0 - 0.013 * 5e-2);
    p.epsilon_inside = random.in(0, 1) == 0;
    p.trust = 0.23F;
    return p;
}

struct State {
    Floats w, slot0, slot1, direction;
};

/// Sums and means of squares are not negative.
State random_state(Random& random, int64_t n, OptimizerKind kind) {
    State s{Floats(random, n), Floats(random, n, 0.1F), Floats(random, n, 0.1F), Floats(random, n)};
    const bool first =
        kind == OptimizerKind::kAdagrad || kind == OptimizerKind::kRmsprop || kind == OptimizerKind::kRmspropMomentum;
    Floats& squares = first ? s.slot0 : s.slot1;
    for (int64_t i = 0; i < n; ++i) squares[i] = std::fabs(squares[i]);
    return s;
}

/// One weight through one update; returns w, or lamb's direction. Slots start as given.
float update_one(const NamedBackend& on, const UpdateParams& p, float gradient, float w, float slot0 = 0,
                 float slot1 = 0) {
    const OnDevice<float> g(on, 1, gradient);
    OnDevice<float> weight(on, 1, w), first(on, 1, slot0), second(on, 1, slot1), direction(on, 1);
    on->update(on.main(), p, 1, g.data(), weight.data(), first.data(), second.data(), direction.data());
    if (p.kind != OptimizerKind::kLamb) return weight.fetch()[0];
    CHECK(weight.fetch()[0] == w);
    return direction.fetch()[0];
}

double square_sum_by_definition(int64_t n, const Floats& gradient, const Floats& w, float divisor, float l2,
                                int chains) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        std::vector<double> chain(static_cast<std::size_t>(chains));
        for (int64_t i = begin; i < std::min(n, begin + 4096); ++i) {
            float g = gradient[i] / divisor;
            if (l2 != 0) g = std::fma(l2, w[i], g);
            double& sum = chain[static_cast<std::size_t>(i % chains)];
            sum = std::fma(static_cast<double>(g), static_cast<double>(g), sum);
        }
        for (std::size_t width = chain.size() / 2; width > 0; width /= 2) {
            for (std::size_t i = 0; i < width; ++i) chain[i] += chain[i + width];
        }
        total += chain[0];
    }
    return total;
}

}  // namespace

TEST_CASE("every optimizer with every option gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const OptimizerKind kind : kKinds) {
        for (const int64_t n : sizes_with_tails(random)) {
            const UpdateParams p = random_params(random, kind);
            const Floats gradient(random, n);
            const State start = random_state(random, n, kind);
            State expected = start;
            reference::update(p, n, gradient.data(), expected.w.data(), expected.slot0.data(), expected.slot1.data(),
                              expected.direction.data());
            for (const NamedBackend& on : backends) {
                INFO(on.name << ", n " << n << ", kind " << static_cast<int>(kind));
                const OnDevice g(on, gradient);
                OnDevice w(on, start.w), slot0(on, start.slot0), slot1(on, start.slot1), direction(on, start.direction);
                on->update(on.main(), p, n, g.data(), w.data(), slot0.data(), slot1.data(), direction.data());
                REQUIRE(same_bytes(w.fetch(), expected.w));
                REQUIRE(same_bytes(slot0.fetch(), expected.slot0));
                REQUIRE(same_bytes(slot1.fetch(), expected.slot1));
                REQUIRE(same_bytes(direction.fetch(), expected.direction));
            }
        }
    }
}

TEST_CASE("sgd has no slots and momentum one: absent slots may be null") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        UpdateParams p;
        p.lr = 0.5F;
        const OnDevice<float> gradient(on, 1, 1.0F);
        OnDevice<float> w(on, 1, 1.0F), v(on, 1);
        on->update(on.main(), p, 1, gradient.data(), w.data(), nullptr, nullptr, nullptr);
        CHECK(w.fetch()[0] == 0.5F);
        p.kind = OptimizerKind::kMomentum;
        on->update(on.main(), p, 1, gradient.data(), w.data(), v.data(), nullptr, nullptr);
        CHECK((w.fetch()[0] == 0.0F && v.fetch()[0] == 1.0F));
    }
}

// G = 8 of 4 samples: g = 8 / 4 = 2; l2 1/2 on w = 2: g = 2 + 1 = 3; clip 1/2: 1.5; weight decay 1/4: g = 1.5 + 0.5
// = 2.
//   sgd, lr 1/4:                     w = 2 - 2/4 = 1.5
//   momentum 1/2, v = 2:             v = 1 + 2 = 3; w = 2 - 3/4 = 1.25
//   nesterov, the same:              v = 3; direction 3/2 + 2 = 3.5; w = 2 - 3.5/4 = 1.125
//   adam, beta 1/2 and 3/4, slots 0: m = 1; v = (1/4) 4 = 1; over 1/2 and 1/4: 2 and 4; w = 2 - (1/4) 2 / (2 + 2)
//   = 1.875 adamw, decay factor 1/2:         no coupled decay: g = 1.5; m = 0.75, v = 0.5625; over the corrections 1.5
//   and 2.25;
//                                    root 1.5; epsilon 1.5: w = 1 - (1/4) 1.5 / 3 = 0.875
//   lamb, weight decay 1/4, slots 0: g = 1.5, slots and root as adamw's: direction 1.5 / 3 + 2/4 = 1; w stays
//   adagrad, s = 5: s = 5 + 4 = 9; epsilon 1: w = 2 - (1/4) 2 / (3 + 1) = 1.875; s = 12, epsilon inside 0: 2 - 2/16
//   rmsprop, rho 3/4, s = 4: s = 3 + 1 = 4; epsilon 2: w = 2 - (1/4) 2 / (2 + 2) = 1.875; epsilon 12 inside: the same
//   rmsprop with momentum 1/2, v = 1: v = 1/2 + (1/4) 2 / 4 = 0.625; w = 1.375
//   lars, trust 1/2, momentum 1/2, v = 2: g = 2/2 = 1; v = 1 + 1 = 2; w = 2 - 2/4 = 1.5
TEST_CASE("each optimizer agrees with a step computed by hand") {
    UpdateParams p;
    p.divisor = 4, p.l2 = 0.5F, p.clip_active = true, p.clip = 0.5F, p.weight_decay = 0.25F, p.lr = 0.25F,
    p.momentum = 0.5F;
    p.beta1 = 0.5F, p.one_minus_beta1 = 0.5F, p.beta2 = 0.75F, p.one_minus_beta2 = 0.25F;
    p.correction1 = 0.5F, p.correction2 = 0.25F, p.epsilon = 2.0F, p.decay_factor = 0.5F;
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        p.kind = OptimizerKind::kSgd, p.epsilon = 2.0F;
        CHECK(update_one(on, p, 8, 2) == 1.5F);
        p.kind = OptimizerKind::kMomentum;
        CHECK(update_one(on, p, 8, 2, 2) == 1.25F);
        p.kind = OptimizerKind::kNesterov;
        CHECK(update_one(on, p, 8, 2, 2) == 1.125F);
        p.kind = OptimizerKind::kAdam;
        CHECK(update_one(on, p, 8, 2) == 1.875F);
        p.kind = OptimizerKind::kAdamW, p.epsilon = 1.5F;
        CHECK(update_one(on, p, 8, 2) == 0.875F);
        p.kind = OptimizerKind::kLamb;
        CHECK(update_one(on, p, 8, 2) == 1.0F);
        p.kind = OptimizerKind::kAdagrad, p.epsilon = 1;
        CHECK(update_one(on, p, 8, 2, 5) == 1.875F);
        p.epsilon = 0, p.epsilon_inside = true;
        CHECK(update_one(on, p, 8, 2, 12) == 1.875F);
        p.kind = OptimizerKind::kRmsprop, p.epsilon = 12;
        CHECK(update_one(on, p, 8, 2, 4) == 1.875F);
        p.epsilon = 2, p.epsilon_inside = false;
        CHECK(update_one(on, p, 8, 2, 4) == 1.875F);
        p.kind = OptimizerKind::kRmspropMomentum;
        CHECK(update_one(on, p, 8, 2, 4, 1) == 1.375F);
        p.kind = OptimizerKind::kLars, p.trust = 0.5F;
        CHECK(update_one(on, p, 8, 2, 2) == 1.5F);
    }
}

// m = 0.1 and v = 0.001 divided by their corrections are 1 and 1; 1 / (1 + 1e-8) = 1 in fp32; 1 - 0.1 rounds to 0.9.
TEST_CASE("the first adam step with lr 0.1 takes a weight of 1 with gradient 1 to 0.9") {
    UpdateParams p;
    p.kind = OptimizerKind::kAdam;
    p.lr = 0.1F, p.beta1 = 0.9F, p.beta2 = 0.999F, p.epsilon = 1e-8F;
    p.one_minus_beta1 = static_cast<float>(1 - 0.9), p.one_minus_beta2 = static_cast<float>(1 - 0.999);
    p.correction1 = static_cast<float>(1 - 0.9), p.correction2 = static_cast<float>(1 - 0.999);
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        CHECK(update_one(on, p, 1, 1) == 0.9F);
    }
}

// g = (6, 8) / 2 = (3, 4): 9 + 16. With l2 = 1 and w = (1, -4): g = (4, 0): 16.
TEST_CASE("the square sum is that of the divided gradient with l2") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice gradient(on, values({6.0F, 8.0F})), w(on, values({1.0F, -4.0F}));
        CHECK(on->square_sum(on.main(), 2, gradient.data(), w.data(), 2, 0) == 25.0);
        CHECK(on->square_sum(on.main(), 2, gradient.data(), w.data(), 2, 1) == 16.0);
    }
}

TEST_CASE("the square sum has one order: blocks of 4096 with 16 chains, on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    std::vector<int64_t> sizes = sizes_with_tails(random);
    for (const int64_t n : {4095, 4096, 4097, 32 * 4096 - 3, 33 * 4096 + 17}) sizes.push_back(n);
    for (const int64_t n : sizes) {
        const Floats gradient(random, n), w(random, n);
        const float divisor = random.in(0, 1) == 0 ? 1.0F : 96.0F, l2 = random.in(0, 1) == 0 ? 0.0F : 0.01F;
        const double expected = square_sum_by_definition(n, gradient, w, divisor, l2, 16);
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", n " << n);
            const OnDevice g(on, gradient), weights(on, w);
            REQUIRE(on->square_sum(on.main(), n, g.data(), weights.data(), divisor, l2) == expected);
        }
    }
}

TEST_CASE("twins: a square sum of 8 chains, and a product where a quotient is meant, are other bytes") {
    Random random;
    INFO("seed " << random.seed());
    Floats gradient(random, 5000);
    for (int64_t i = 0; i < 5000; ++i) gradient[i] = std::ldexp(gradient[i], random.in(-12, 12));
    int differing = 0;
    for (int64_t n = 4900; n <= 5000; ++n) {
        const double right = square_sum_by_definition(n, gradient, gradient, 7, 0, 16);
        differing += square_sum_by_definition(n, gradient, gradient, 7, 0, 8) != right ? 1 : 0;
    }
    CHECK(differing > 0);
    differing = 0;
    for (int64_t i = 0; i < 5000; ++i) differing += gradient[i] / 7.0F != gradient[i] * (1.0F / 7.0F) ? 1 : 0;
    CHECK(differing > 100);
}
