// Softmax and its cross entropy: the reference's bytes on every backend, over the whole range of the exponential, and
// what becomes of logits that are not finite.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/reference.hpp"
#include "core/fixed_math.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct SoftmaxCase {
    int rows, classes;
    Floats logits;
    Guarded<int32_t> labels;
};

SoftmaxCase random_case(Random& random, int rows, int classes) {
    SoftmaxCase c{rows, classes, Floats(random, int64_t{rows} * classes, random.in(0, 1) == 0 ? 2.0F : 40.0F),
                  Guarded<int32_t>(rows)};
    for (int r = 0; r < rows; ++r) c.labels[r] = random.in(0, classes - 1);
    return c;
}

void check_against_reference(const std::vector<NamedBackend>& backends, const SoftmaxCase& c) {
    const int64_t n = int64_t{c.rows} * c.classes;
    Floats loss(c.rows), dlogits(n), probabilities(n);
    reference::softmax_cross_entropy(c.rows, c.classes, c.logits.data(), c.labels.data(), loss.data(), dlogits.data());
    reference::softmax(c.rows, c.classes, c.logits.data(), probabilities.data());
    for (const NamedBackend& on : backends) {
        INFO(on.name << ", rows " << c.rows << ", classes " << c.classes);
        const OnDevice z(on, c.logits);
        const OnDevice labels(on, c.labels);
        OnDevice<float> l(on, c.rows), d(on, n), alone(on, c.rows), p(on, n);
        OnDevice in_place(on, c.logits);
        on->softmax_cross_entropy(on.main(), c.rows, c.classes, z.data(), labels.data(), l.data(), d.data());
        REQUIRE(same_bytes(l.fetch(), loss));
        REQUIRE(same_bytes(d.fetch(), dlogits));
        on->softmax_cross_entropy(on.main(), c.rows, c.classes, z.data(), labels.data(), alone.data(), nullptr);
        REQUIRE(same_bytes(alone.fetch(), loss));
        on->softmax_cross_entropy(on.main(), c.rows, c.classes, in_place.data(), labels.data(), alone.data(),
                                  in_place.data());
        REQUIRE(same_bytes(in_place.fetch(), dlogits));
        on->softmax(on.main(), c.rows, c.classes, z.data(), p.data());
        REQUIRE(same_bytes(p.fetch(), probabilities));
    }
}

}  // namespace

TEST_CASE("softmax cross entropy gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (int classes = 1; classes <= 40; ++classes) {
        check_against_reference(backends, random_case(random, random.in(1, 9), classes));
    }
    check_against_reference(backends, random_case(random, 701, 10));
    check_against_reference(backends, random_case(random, 33, 1000));
}

// With a zero beside it the larger logit is 0: e is the exponential itself, rounded once by the division.
TEST_CASE("softmax meets the exponential over the whole of the negative floats, and the logarithm over 1 to 2") {
    std::vector<float> pairs;
    for (uint32_t bits = 0x80000000; bits < 0xff800000; bits += bits < 0xc2aeacff ? 159979 : 1600033) {
        pairs.push_back(0.0F);
        pairs.push_back(std::bit_cast<float>(bits));
    }
    for (uint32_t bits = 0xc2aeac00; bits <= 0xc2aeacff; ++bits) {
        pairs.push_back(0.0F);
        pairs.push_back(std::bit_cast<float>(bits));
    }
    const int rows = static_cast<int>(pairs.size() / 2);
    check_against_reference(every_backend(1), {rows, 2, values(pairs), Guarded<int32_t>(rows, 1)});
}

// z = (0, 0): e = 1, 1; s = 2; loss = log 2 - (0 - 0); dz = 1/2, and 1/2 - 1.
// z = (1000, 0): e = 1, and exp(-1000) = +0; at label 1 the loss is log 1 - (0 - 1000) = 1000; no overflow.
TEST_CASE("softmax cross entropy agrees with a computation by hand") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice logits(on, values({0.0F, 0.0F, 1000.0F, 0.0F}));
        const OnDevice labels(on, values({int32_t{1}, int32_t{1}}));
        OnDevice<float> loss(on, 2), dlogits(on, 4), probabilities(on, 4);
        on->softmax_cross_entropy(on.main(), 2, 2, logits.data(), labels.data(), loss.data(), dlogits.data());
        CHECK(same_bytes(loss.fetch(), values({log_fixed(2.0F), 1000.0F})));
        CHECK(same_bytes(dlogits.fetch(), values({0.5F, -0.5F, 1.0F, -1.0F})));
        on->softmax(on.main(), 2, 2, logits.data(), probabilities.data());
        CHECK(same_bytes(probabilities.fetch(), values({0.5F, 0.5F, 1.0F, 0.0F})));
    }
}

TEST_CASE("a NaN or an infinity among the logits makes the loss NaN on every target, wherever it stands") {
    const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
    for (const NamedBackend& on : every_backend(1)) {
        for (int at = 0; at < 21; ++at) {
            for (const float value : bad) {
                INFO(on.name << ", class " << at);
                Floats host(21);
                host[at] = value;
                const OnDevice logits(on, host);
                const OnDevice labels(on, values({int32_t{3}}));
                OnDevice<float> loss(on, 1), dlogits(on, 21);
                on->softmax_cross_entropy(on.main(), 1, 21, logits.data(), labels.data(), loss.data(), dlogits.data());
                CHECK(std::isnan(loss.fetch()[0]));
                CHECK(std::isnan(dlogits.fetch()[0]));
            }
        }
    }
}

TEST_CASE("twin: a softmax sum of 8 chains is other bytes") {
    Random random;
    INFO("seed " << random.seed());
    int differing = 0;
    for (int trial = 0; trial < 100; ++trial) {
        const SoftmaxCase c = random_case(random, 1, 60);
        Floats p(60);
        reference::softmax(1, 60, c.logits.data(), p.data());
        float maximum = c.logits[0];
        for (int i = 0; i < 60; ++i) maximum = std::fmax(maximum, c.logits[i]);
        float chain[8] = {};
        for (int i = 0; i < 60; ++i) chain[i % 8] += exp_fixed(c.logits[i] - maximum);
        for (int width = 4; width > 0; width /= 2) {
            for (int i = 0; i < width; ++i) chain[i] += chain[i + width];
        }
        for (int i = 0; i < 60; ++i) differing += exp_fixed(c.logits[i] - maximum) / chain[0] != p[i] ? 1 : 0;
    }
    CHECK(differing > 100);
}
