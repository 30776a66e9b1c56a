// The losses beside softmax cross entropy: smoothed labels, one logit, squared error. The reference's bytes on every
// backend; the reference itself against computations by hand and central differences.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/reference.hpp"
#include "backend/cpu/reference_loss.hpp"
#include "core/fixed_math.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Guarded<int32_t> random_labels(Random& random, int rows, int classes) {
    Guarded<int32_t> labels(rows);
    for (int r = 0; r < rows; ++r) labels[r] = random.in(0, classes - 1);
    return labels;
}

/// Rows for every tail of a vector, and some that wake the threads.
std::vector<int> row_counts(Random& random) {
    std::vector<int> rows;
    for (int n = 1; n <= 34; ++n) rows.push_back(n);
    rows.push_back(random.in(100, 1000));
    rows.push_back(random.in(4096, 9000));
    return rows;
}

/// (loss(x + step) - loss(x - step)) / (2 step), of a loss in fp64.
template <class Loss>
double slope(const Loss& loss, double x) {
    const double step = 1e-5;
    return (loss(x + step) - loss(x - step)) / (2 * step);
}

}  // namespace

TEST_CASE("cross entropy with smoothed labels gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const int classes : {2, 3, 10, 15, 16, 17, 31, 33, 100, 1001}) {
        const int rows = random.in(1, 40);
        const float smoothing = random.in(0, 1) == 0 ? 0.1F : 0.37F;
        const Floats logits(random, int64_t{rows} * classes, 5.0F);
        const Guarded<int32_t> labels = random_labels(random, rows, classes);
        Floats loss(rows), dlogits(logits.size());
        reference::smoothed_cross_entropy(rows, classes, smoothing, logits.data(), labels.data(), loss.data(),
                                          dlogits.data());
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << rows << " x " << classes);
            const OnDevice z(on, logits);
            const OnDevice at(on, labels);
            OnDevice<float> l(on, rows), alone(on, rows), dz(on, logits.size());
            on->smoothed_cross_entropy(on.main(), rows, classes, smoothing, z.data(), at.data(), l.data(), dz.data());
            REQUIRE(same_bytes(l.fetch(), loss));
            REQUIRE(same_bytes(dz.fetch(), dlogits));
            on->smoothed_cross_entropy(on.main(), rows, classes, smoothing, z.data(), at.data(), alone.data(), nullptr);
            REQUIRE(same_bytes(alone.fetch(), loss));
            OnDevice in_place(on, logits);
            on->smoothed_cross_entropy(on.main(), rows, classes, smoothing, in_place.data(), at.data(), l.data(),
                                       in_place.data());
            REQUIRE(same_bytes(in_place.fetch(), dlogits));
        }
    }
}

TEST_CASE("without smoothing the smoothed cross entropy is the plain one") {
    Random random;
    INFO("seed " << random.seed());
    const Floats logits(random, 20 * 37, 5.0F);
    const Guarded<int32_t> labels = random_labels(random, 20, 37);
    Floats loss(20), dlogits(20 * 37), smoothed_loss(20), smoothed(20 * 37);
    reference::softmax_cross_entropy(20, 37, logits.data(), labels.data(), loss.data(), dlogits.data());
    reference::smoothed_cross_entropy(20, 37, 0.0F, logits.data(), labels.data(), smoothed_loss.data(),
                                      smoothed.data());
    CHECK(same_bytes(smoothed_loss, loss));
    CHECK(same_bytes(smoothed, dlogits));
    reference::smoothed_cross_entropy(20, 37, 1e-3F, logits.data(), labels.data(), smoothed_loss.data(),
                                      smoothed.data());
    CHECK_FALSE(same_bytes(smoothed, dlogits));
}

// Logits 0, 0 with smoothing 1/2: targets 3/4 and 1/4, loss log 2 in any case, gradients 1/2 - 3/4 and 1/2 - 1/4.
TEST_CASE("the smoothed cross entropy agrees with a computation by hand") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice logits(on, values({0.0F, 0.0F}));
        const OnDevice labels(on, values({int32_t{0}}));
        OnDevice<float> loss(on, 1), dlogits(on, 2);
        on->smoothed_cross_entropy(on.main(), 1, 2, 0.5F, logits.data(), labels.data(), loss.data(), dlogits.data());
        CHECK(same_bytes(loss.fetch(), values({log_fixed(2.0F)})));
        CHECK(same_bytes(dlogits.fetch(), values({-0.25F, 0.25F})));
    }
}

TEST_CASE("the gradient of the smoothed cross entropy is the derivative of its loss") {
    const std::vector<double> z = {0.3, -1.2, 2.0, 0.1, 0.7};
    Floats logits(5), dlogits(5), loss(1);
    for (std::size_t i = 0; i < 5; ++i) logits[static_cast<int64_t>(i)] = static_cast<float>(z[i]);
    const int32_t label = 2;
    reference::smoothed_cross_entropy(1, 5, 0.1F, logits.data(), &label, loss.data(), dlogits.data());
    for (std::size_t i = 0; i < 5; ++i) {
        const auto loss_at = [&](double value) {
            std::vector<double> moved = z;
            moved[i] = value;
            double sum = 0, total = 0;
            for (const double each : moved) sum += std::exp(each);
            for (std::size_t c = 0; c < 5; ++c) total -= ((c == 2 ? 0.9 : 0.0) + 0.1 / 5) * (moved[c] - std::log(sum));
            return total;
        };
        CHECK(dlogits[static_cast<int64_t>(i)] == Approx(slope(loss_at, z[i])).margin(1e-6));
        CHECK(loss[0] == Approx(loss_at(z[i])).epsilon(1e-6));
    }
}

TEST_CASE("sigmoid, its cross entropy and the squared error give the reference's bytes on every target") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const int rows : row_counts(random)) {
        Floats z(random, rows, 20.0F), targets(random, rows);
        if (rows > 5) z[0] = 0.0F, z[1] = -0.0F, z[2] = 200.0F, z[3] = -200.0F, z[4] = 88.5F, z[5] = -88.5F;
        const Guarded<int32_t> labels = random_labels(random, rows, 2);
        Floats probabilities(rows), loss(rows), dlogits(rows), error(rows), derror(rows);
        reference::sigmoid(rows, z.data(), probabilities.data());
        reference::sigmoid_cross_entropy(rows, z.data(), labels.data(), loss.data(), dlogits.data());
        reference::squared_error(rows, z.data(), targets.data(), error.data(), derror.data());
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << rows << " rows");
            const OnDevice x(on, z), t(on, targets);
            const OnDevice at(on, labels);
            OnDevice<float> y(on, rows), l(on, rows), alone(on, rows), dz(on, rows);
            on->sigmoid(on.main(), rows, x.data(), y.data());
            REQUIRE(same_bytes(y.fetch(), probabilities));
            on->sigmoid_cross_entropy(on.main(), rows, x.data(), at.data(), l.data(), dz.data());
            REQUIRE(same_bytes(l.fetch(), loss));
            REQUIRE(same_bytes(dz.fetch(), dlogits));
            on->sigmoid_cross_entropy(on.main(), rows, x.data(), at.data(), alone.data(), nullptr);
            REQUIRE(same_bytes(alone.fetch(), loss));
            on->squared_error(on.main(), rows, x.data(), t.data(), l.data(), dz.data());
            REQUIRE(same_bytes(l.fetch(), error));
            REQUIRE(same_bytes(dz.fetch(), derror));
            on->squared_error(on.main(), rows, x.data(), t.data(), alone.data(), nullptr);
            REQUIRE(same_bytes(alone.fetch(), error));
        }
    }
}

TEST_CASE("the sigmoid cross entropy is right at both ends, and its gradient the derivative") {
    const std::vector<double> logits = {-30, -3, -0.5, 0, 0.25, 4, 25};
    for (const double z : logits) {
        for (const int32_t label : {0, 1}) {
            INFO("logit " << z << ", label " << label);
            const auto logit = static_cast<float>(z);
            float loss = 0, dlogit = 0;
            reference::sigmoid_cross_entropy(1, &logit, &label, &loss, &dlogit);
            const auto exact = [&](double x) { return std::log1p(std::exp(label == 1 ? -x : x)); };
            CHECK(loss == Approx(exact(z)).epsilon(1e-6).margin(0));  // a confident right answer is not rounded to 0
            CHECK(dlogit == Approx(slope(exact, z)).margin(1e-6));
        }
    }
}

TEST_CASE("a logit that is no finite number makes the sigmoid cross entropy none either") {
    const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity()};
    for (const NamedBackend& on : every_backend(1)) {
        for (int at = 0; at < 19; ++at) {
            for (const float value : bad) {
                for (const int32_t label : {0, 1}) {
                    INFO(on.name << ", row " << at << ", logit " << value << ", label " << label);
                    Floats z(19);
                    z[at] = value;
                    const OnDevice logits(on, z);
                    const OnDevice labels(on, Guarded<int32_t>(19, label));
                    OnDevice<float> loss(on, 19);
                    on->sigmoid_cross_entropy(on.main(), 19, logits.data(), labels.data(), loss.data(), nullptr);
                    CHECK_FALSE(std::isfinite(loss.fetch()[at]));
                }
            }
        }
    }
}
