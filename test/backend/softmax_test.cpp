#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"
#include "core/fixed_math.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct SoftmaxCase {
    int rows, classes;
    Floats logits;
    std::vector<int32_t> labels;
};

SoftmaxCase random_case(Random& random, int rows, int classes) {
    SoftmaxCase c{rows, classes, Floats(random, int64_t{rows} * classes, random.in(0, 1) == 0 ? 2.0F : 40.0F), {}};
    for (int r = 0; r < rows; ++r) c.labels.push_back(random.in(0, classes - 1));
    return c;
}

void check_against_reference(const std::vector<NamedBackend>& backends, const SoftmaxCase& c) {
    const int64_t n = int64_t{c.rows} * c.classes;
    Floats loss(c.rows), dlogits(n), probabilities(n);
    reference::softmax_cross_entropy(c.rows, c.classes, c.logits.data(), c.labels.data(), loss.data(), dlogits.data());
    reference::softmax(c.rows, c.classes, c.logits.data(), probabilities.data());
    for (const auto& [name, backend] : backends) {
        INFO(name << ", rows " << c.rows << ", classes " << c.classes);
        Floats l(c.rows), d(n), alone(c.rows), p(n), in_place = c.logits;
        const float* z = c.logits.data();
        backend->softmax_cross_entropy(backend->main(), c.rows, c.classes, z, c.labels.data(), l.data(), d.data());
        REQUIRE(same_bytes(l, loss));
        REQUIRE(same_bytes(d, dlogits));
        backend->softmax_cross_entropy(backend->main(), c.rows, c.classes, z, c.labels.data(), alone.data(), nullptr);
        REQUIRE(same_bytes(alone, loss));
        backend->softmax_cross_entropy(backend->main(), c.rows, c.classes, in_place.data(), c.labels.data(),
                                       alone.data(), in_place.data());
        REQUIRE(same_bytes(in_place, dlogits));
        backend->softmax(backend->main(), c.rows, c.classes, z, p.data());
        REQUIRE(same_bytes(p, probabilities));
    }
}

/// Every `stride`-th float from the bits `first` on, up to `last`.
std::vector<float> floats_between(uint32_t first, uint32_t last, uint32_t stride) {
    std::vector<float> x;
    for (uint64_t bits = first; bits <= last; bits += stride)
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    return x;
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

TEST_CASE("the exponential of every target is exp_fixed, over the whole of the negative floats") {
    // -0 … -87.34 densely, where results are normal; beyond, down to the largest finite float and infinity, coarsely.
    std::vector<float> x = floats_between(0x80000000, 0xc2aeac60, 997);
    for (const float more : floats_between(0xc2aeac00, 0xc2aeacff, 1)) x.push_back(more);
    for (const float more : floats_between(0xc2aeac50, 0xff7fffff, 40009)) x.push_back(more);
    x.push_back(-std::numeric_limits<float>::max());
    x.push_back(-std::numeric_limits<float>::infinity());
    const auto n = static_cast<int64_t>(x.size());
    Floats expected(n);
    for (int64_t i = 0; i < n; ++i) expected[i] = exp_fixed(x[static_cast<std::size_t>(i)]);
    for (const Isa isa : available_isas()) {
        INFO(isa_name(isa));
        Floats y(n);
        softmax_kernels(isa).exponentials(n, x.data(), y.data());
        CHECK(same_bytes(y, expected));
    }
}

// z = (0, 0): e = 1, 1; s = 2; loss = log 2 - (0 - 0); dz = 1/2, and 1/2 - 1.
// z = (1000, 0): e = 1, and exp(-1000) = +0; at label 1 the loss is log 1 - (0 - 1000) = 1000; no overflow.
TEST_CASE("softmax cross entropy agrees with a computation by hand") {
    const float logits[] = {0, 0, 1000, 0};
    const int32_t labels[] = {1, 1};
    for (const auto& [name, backend] : every_backend(1)) {
        INFO(name);
        float loss[2], dlogits[4], probabilities[4];
        backend->softmax_cross_entropy(backend->main(), 2, 2, logits, labels, loss, dlogits);
        CHECK((loss[0] == log_fixed(2.0F) && loss[1] == 1000.0F));
        CHECK((dlogits[0] == 0.5F && dlogits[1] == -0.5F && dlogits[2] == 1.0F && dlogits[3] == -1.0F));
        backend->softmax(backend->main(), 2, 2, logits, probabilities);
        CHECK((probabilities[0] == 0.5F && probabilities[1] == 0.5F && probabilities[2] == 1.0F &&
               probabilities[3] == 0.0F));
    }
}

TEST_CASE("a NaN or an infinity among the logits makes the loss NaN on every target, wherever it stands") {
    const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
    for (const auto& [name, backend] : every_backend(1)) {
        for (int at = 0; at < 21; ++at) {
            for (const float value : bad) {
                INFO(name << ", class " << at);
                float logits[21] = {}, loss[1], dlogits[21];
                const int32_t labels[] = {3};
                logits[at] = value;
                backend->softmax_cross_entropy(backend->main(), 1, 21, logits, labels, loss, dlogits);
                CHECK(std::isnan(loss[0]));
                CHECK(std::isnan(dlogits[0]));
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
