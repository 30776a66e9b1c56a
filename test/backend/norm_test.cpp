// Batch norm forward and backward, merged moments and running values: the reference's bytes on every backend; the
// reference itself against computations by hand, exact arithmetic and central differences.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "backend/cpu/reference_norm.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr float kEpsilon = 1e-3F;

struct NormCase {
    int64_t rows;
    int channels;
    Floats x, dy, y, gamma, beta;
    int64_t elements() const { return rows * channels; }
};

NormCase norm_case(Random& random, int64_t rows, int channels) {
    const int64_t n = rows * channels;
    NormCase c{rows,
               channels,
               Floats(random, n),
               Floats(random, n),
               Floats(random, n),
               Floats(random, channels),
               Floats(random, channels)};
    for (int64_t i = 0; i < n; ++i) {
        c.x[i] = c.x[i] * 2.0F + static_cast<float>(i % channels) - 5.0F;  // every channel has a mean of its own
        if (random.in(0, 1) == 0) c.y[i] = 0.0F;                           // what a relu leaves
    }
    return c;
}

std::vector<NormCase> norm_cases(Random& random) {
    std::vector<NormCase> cases;
    for (const int channels : {1, 3, 16, 17, 32, 40, 64, 100, 129}) {
        cases.push_back(norm_case(random, random.in(1, 12), channels));
        cases.push_back(norm_case(random, random.in(250, 262), channels));
        cases.push_back(norm_case(random, random.in(500, 1400), channels));
    }
    cases.push_back(norm_case(random, 256 * 9 + random.in(1, 255), random.in(20, 40)));  // blocks for every thread
    cases.push_back(norm_case(random, random.in(20, 60), random.in(1000, 2000)));        // few rows: channels are dealt
    return cases;
}

struct Results {
    Floats moments, statistics, plain, rectified, sums, masked_sums, dx, masked_dx;
    explicit Results(const NormCase& c)
        : moments(2 * c.channels),
          statistics(2 * c.channels),
          plain(c.elements()),
          rectified(c.elements()),
          sums(2 * c.channels),
          masked_sums(2 * c.channels),
          dx(c.elements()),
          masked_dx(c.elements()) {}
};

Results by_definition(const NormCase& c) {
    Results r(c);
    const int n = c.channels;
    const int64_t count = 2 * c.rows;  // as if another shard had as many
    reference::batch_moments(c.rows, n, c.x.data(), r.moments.data());
    reference::batch_statistics(c.rows, n, kEpsilon, r.moments.data(), r.statistics.data());
    const float* s = r.statistics.data();
    reference::batch_norm(c.rows, n, false, c.x.data(), s, c.gamma.data(), c.beta.data(), r.plain.data());
    reference::batch_norm(c.rows, n, true, c.x.data(), s, c.gamma.data(), c.beta.data(), r.rectified.data());
    reference::batch_norm_sums(c.rows, n, c.x.data(), s, c.dy.data(), nullptr, r.sums.data());
    reference::batch_norm_sums(c.rows, n, c.x.data(), s, c.dy.data(), c.y.data(), r.masked_sums.data());
    reference::batch_norm_backward(c.rows, n, count, c.x.data(), s, c.gamma.data(), r.sums.data(), c.dy.data(), nullptr,
                                   r.dx.data());
    reference::batch_norm_backward(c.rows, n, count, c.x.data(), s, c.gamma.data(), r.masked_sums.data(), c.dy.data(),
                                   c.y.data(), r.masked_dx.data());
    return r;
}

void check_on(const NamedBackend& on, const NormCase& c, const Results& expected) {
    INFO(on.name << ", " << c.rows << " rows of " << c.channels);
    Stream& main = on.main();
    const int n = c.channels;
    const int64_t count = 2 * c.rows;
    const OnDevice x(on, c.x), dy(on, c.dy), y(on, c.y), gamma(on, c.gamma), beta(on, c.beta);
    OnDevice<float> moments(on, 2 * n, 9.0F), statistics(on, 2 * n), out(on, c.elements()), sums(on, 2 * n, 9.0F);
    on->batch_moments(main, c.rows, n, x.data(), moments.data());
    REQUIRE(same_bytes(moments.fetch(), expected.moments));
    on->batch_statistics(main, c.rows, n, kEpsilon, moments.data(), statistics.data());
    REQUIRE(same_bytes(statistics.fetch(), expected.statistics));
    const float* s = statistics.data();
    on->batch_norm(main, c.rows, n, false, x.data(), s, gamma.data(), beta.data(), out.data());
    REQUIRE(same_bytes(out.fetch(), expected.plain));
    on->batch_norm(main, c.rows, n, true, x.data(), s, gamma.data(), beta.data(), out.data());
    REQUIRE(same_bytes(out.fetch(), expected.rectified));
    on->batch_norm_sums(main, c.rows, n, x.data(), s, dy.data(), nullptr, sums.data());
    REQUIRE(same_bytes(sums.fetch(), expected.sums));
    on->batch_norm_backward(main, c.rows, n, count, x.data(), s, gamma.data(), sums.data(), dy.data(), nullptr,
                            out.data());
    REQUIRE(same_bytes(out.fetch(), expected.dx));
    on->batch_norm_sums(main, c.rows, n, x.data(), s, dy.data(), y.data(), sums.data());
    REQUIRE(same_bytes(sums.fetch(), expected.masked_sums));
    OnDevice in_place(on, c.dy);
    on->batch_norm_backward(main, c.rows, n, count, x.data(), s, gamma.data(), sums.data(), in_place.data(), y.data(),
                            in_place.data());
    REQUIRE(same_bytes(in_place.fetch(), expected.masked_dx));
}

/// Sum over r of weight * y in fp64, y the batch norm of x: what finite differences are taken of.
double weighted_output(const NormCase& c, const std::vector<double>& x) {
    double total = 0;
    for (int channel = 0; channel < c.channels; ++channel) {
        const auto at = [&](int64_t r) { return static_cast<std::size_t>(r * c.channels + channel); };
        double mean = 0, variance = 0;
        for (int64_t r = 0; r < c.rows; ++r) mean += x[at(r)] / static_cast<double>(c.rows);
        for (int64_t r = 0; r < c.rows; ++r) variance += std::pow(x[at(r)] - mean, 2) / static_cast<double>(c.rows);
        for (int64_t r = 0; r < c.rows; ++r) {
            const double xhat = (x[at(r)] - mean) / std::sqrt(variance + kEpsilon);
            total += c.dy[r * c.channels + channel] * (c.gamma[channel] * xhat + c.beta[channel]);
        }
    }
    return total;
}

}  // namespace

TEST_CASE("batch norm gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const NormCase& c : norm_cases(random)) {
        const Results expected = by_definition(c);
        for (const NamedBackend& on : backends) check_on(on, c, expected);
    }
}

TEST_CASE("moments are merged, and running values updated, with the reference's bytes") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend(2);
    for (const int channels : {1, 5, 16, 33, 300}) {
        const int64_t left_rows = random.in(1, 5000), right_rows = random.in(1, 5000);
        Floats left(random, 2 * channels, 100.0F), right(random, 2 * channels, 100.0F);
        for (int i = channels; i < 2 * channels; ++i) left[i] = std::fabs(left[i]), right[i] = std::fabs(right[i]);
        Floats merged(2 * channels), running = left, small = left, statistics(2 * channels);
        reference::merge_moments(channels, left_rows, right_rows, left.data(), right.data(), merged.data());
        reference::update_running(left_rows, channels, 0.9F, 0.1F, true, right.data(), running.data());
        reference::update_running(1, channels, 0.9F, 0.1F, true, right.data(), small.data());
        reference::running_statistics(channels, kEpsilon, left.data(), statistics.data());
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << channels << " channels");
            Stream& main = on.main();
            OnDevice l(on, left), r(on, right), updated(on, left), updated_small(on, left);
            OnDevice<float> into(on, 2 * channels), ready(on, 2 * channels);
            on->merge_moments(main, channels, left_rows, right_rows, l.data(), r.data(), into.data());
            REQUIRE(same_bytes(into.fetch(), merged));
            on->update_running(main, left_rows, channels, 0.9F, 0.1F, true, r.data(), updated.data());
            REQUIRE(same_bytes(updated.fetch(), running));
            on->update_running(main, 1, channels, 0.9F, 0.1F, true, r.data(), updated_small.data());
            REQUIRE(same_bytes(updated_small.fetch(), small));
            on->running_statistics(main, channels, kEpsilon, l.data(), ready.data());
            REQUIRE(same_bytes(ready.fetch(), statistics));
            on->merge_moments(main, channels, left_rows, right_rows, l.data(), r.data(), r.data());
            REQUIRE(same_bytes(r.fetch(), merged));
            const OnDevice other(on, right);
            on->merge_moments(main, channels, left_rows, right_rows, l.data(), other.data(), l.data());
            REQUIRE(same_bytes(l.fetch(), merged));
        }
    }
}

// Rows 1, 3 | 5, 11: sums 4, 16, means 2, 8, squares 2, 18. Together mean 5, squares 16 + 4 + 0 + 36 = 56 = 2 + 18 +
// 6^2 * (2 * 2 / 4). Statistics with epsilon 2: variance 14, 1 / sqrt(16).
TEST_CASE("moments agree with a computation by hand") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice left(on, values({1.0F, 3.0F})), right(on, values({5.0F, 11.0F}));
        OnDevice<float> a(on, 2), b(on, 2), statistics(on, 2);
        OnDevice running(on, values({1.0F, 8.0F}));
        on->batch_moments(on.main(), 2, 1, left.data(), a.data());
        on->batch_moments(on.main(), 2, 1, right.data(), b.data());
        CHECK(same_bytes(a.fetch(), values({4.0F, 2.0F})));
        CHECK(same_bytes(b.fetch(), values({16.0F, 18.0F})));
        on->merge_moments(on.main(), 1, 2, 2, a.data(), b.data(), a.data());
        CHECK(same_bytes(a.fetch(), values({20.0F, 56.0F})));
        on->batch_statistics(on.main(), 4, 1, 2.0F, a.data(), statistics.data());
        CHECK(same_bytes(statistics.fetch(), values({5.0F, 0.25F})));
        on->update_running(on.main(), 4, 1, 0.5F, 0.5F, false, a.data(), running.data());
        CHECK(same_bytes(running.fetch(), values({3.0F, 11.0F})));
    }
}

TEST_CASE("merged moments are those of all rows, in exact arithmetic") {
    Random random;
    INFO("seed " << random.seed());
    NormCase c = norm_case(random, 900, 4);
    for (int64_t i = 0; i < c.elements(); ++i) c.x[i] = c.x[i] + 1000.0F;  // sum x^2 - n mean^2 would be lost
    for (const int64_t split : {1, 300, 899}) {
        Floats left(8), right(8);
        reference::batch_moments(split, 4, c.x.data(), left.data());
        reference::batch_moments(900 - split, 4, c.x.data() + split * 4, right.data());
        reference::merge_moments(4, split, 900 - split, left.data(), right.data(), left.data());
        for (int channel = 0; channel < 4; ++channel) {
            double sum = 0, squares = 0;
            for (int64_t r = 0; r < 900; ++r) sum += c.x[r * 4 + channel];
            for (int64_t r = 0; r < 900; ++r) squares += std::pow(c.x[r * 4 + channel] - sum / 900, 2);
            CHECK(left[channel] == Approx(sum).epsilon(1e-6));
            CHECK(left[4 + channel] == Approx(squares).epsilon(1e-4));
        }
    }
}

TEST_CASE("the backward pass of batch norm is the derivative of its forward pass") {
    Random random;
    INFO("seed " << random.seed());
    const NormCase c = norm_case(random, 11, 3);
    Floats moments(6), statistics(6), sums(6), dx(33);
    reference::batch_moments(11, 3, c.x.data(), moments.data());
    reference::batch_statistics(11, 3, kEpsilon, moments.data(), statistics.data());
    reference::batch_norm_sums(11, 3, c.x.data(), statistics.data(), c.dy.data(), nullptr, sums.data());
    reference::batch_norm_backward(11, 3, 11, c.x.data(), statistics.data(), c.gamma.data(), sums.data(), c.dy.data(),
                                   nullptr, dx.data());
    std::vector<double> x(c.x.data(), c.x.data() + 33);
    for (std::size_t i = 0; i < 33; ++i) {
        const double step = 1e-5, at = x[i];
        x[i] = at + step;
        const double above = weighted_output(c, x);
        x[i] = at - step;
        const double below = weighted_output(c, x);
        x[i] = at;
        CHECK(dx[static_cast<int64_t>(i)] == Approx((above - below) / (2 * step)).margin(1e-4));
    }
}

TEST_CASE("twin: one chain for all rows of a block is other bytes") {
    Random random;
    INFO("seed " << random.seed());
    const NormCase c = norm_case(random, 2000, 50);
    Floats moments(100);
    reference::batch_moments(2000, 50, c.x.data(), moments.data());
    int differing = 0;
    for (int channel = 0; channel < 50; ++channel) {
        float total = 0;
        for (int64_t begin = 0; begin < 2000; begin += 256) {
            float chain = 0;
            for (int64_t r = begin; r < std::min<int64_t>(begin + 256, 2000); ++r) chain += c.x[r * 50 + channel];
            total += chain;
        }
        differing += total != moments[channel] ? 1 : 0;
    }
    CHECK(differing > 10);
}
