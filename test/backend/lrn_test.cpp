// Local response normalisation: the reference's bytes on every backend, and the reference against a computation by
// hand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "backend/cpu/reference_norm.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct LrnCase {
    LrnShape shape;
    int64_t rows;
};

/// Windows that end inside, beyond both borders, and across the pieces that a kernel cuts many channels into.
std::vector<LrnCase> lrn_cases(Random& random) {
    std::vector<LrnCase> cases;
    for (const int channels : {1, 2, 7, 16, 17, 32, 64, 96, 130}) {
        for (const int radius : {0, 1, 4, 5, 40}) {
            LrnShape shape{channels, radius};
            if (radius == 5) shape = {channels, radius, 2.0F, 1e-2F, 0.5F};
            if (radius == 1) shape.bias = 0.25F;  // d < 1: a power above 1
            cases.push_back({shape, random.in(1, 6)});
        }
    }
    cases.push_back({{1500, 2, 1.0F, 0.3F, 0.75F}, 2});
    cases.push_back({{1100, 64, 1.0F, 0.01F, 0.75F}, 1});
    cases.push_back({{150, 80, 1.0F, 0.01F, 0.75F}, 1});
    cases.push_back({{64, 4}, random.in(520, 600)});  // threads
    return cases;
}

}  // namespace

TEST_CASE("local response normalisation gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend(2);
    for (const LrnCase& c : lrn_cases(random)) {
        const int64_t n = c.rows * c.shape.channels;
        const Floats x(random, n, 5.0F), dy(random, n);
        Floats y(n), dx(n);
        reference::lrn(c.shape, c.rows, x.data(), y.data());
        reference::lrn_backward(c.shape, c.rows, x.data(), dy.data(), dx.data());
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << c.rows << " rows of " << c.shape.channels << ", radius " << c.shape.radius);
            const OnDevice from(on, x), gradient(on, dy);
            OnDevice<float> to(on, n), back(on, n);
            on->lrn(on.main(), c.shape, c.rows, from.data(), to.data());
            REQUIRE(same_bytes(to.fetch(), y));
            on->lrn_backward(on.main(), c.shape, c.rows, from.data(), gradient.data(), back.data());
            REQUIRE(same_bytes(back.fetch(), dx));
        }
    }
}

// x = 1, 2, 4 with radius 1, bias 3, alpha 1, beta 1: d = 3 + 5, 3 + 21, 3 + 20.
TEST_CASE("local response normalisation agrees with a computation by hand, and its gradient is the derivative") {
    const LrnShape shape{3, 1, 3.0F, 1.0F, 1.0F};
    const std::vector<double> x = {1, 2, 4}, weight = {0.5, -2, 1};
    const auto output = [&](const std::vector<double>& at, std::size_t c) {
        double squares = 0;
        for (std::size_t j = c > 0 ? c - 1 : 0; j < std::min<std::size_t>(c + 2, 3); ++j) squares += at[j] * at[j];
        return at[c] / (3 + squares);
    };
    const Floats from = values({1.0F, 2.0F, 4.0F}), dy = values({0.5F, -2.0F, 1.0F});
    Floats y(3), dx(3);
    reference::lrn(shape, 1, from.data(), y.data());
    reference::lrn_backward(shape, 1, from.data(), dy.data(), dx.data());
    CHECK(y[0] == Approx(1.0 / 8));
    CHECK(y[1] == Approx(2.0 / 24));
    CHECK(y[2] == Approx(4.0 / 23));
    for (std::size_t i = 0; i < 3; ++i) {
        double slope = 0;
        for (std::size_t c = 0; c < 3; ++c) {
            std::vector<double> above = x, below = x;
            above[i] += 1e-5, below[i] -= 1e-5;
            slope += weight[c] * (output(above, c) - output(below, c)) / 2e-5;
        }
        CHECK(dx[static_cast<int64_t>(i)] == Approx(slope).epsilon(1e-5));
    }
}
