// Dropout: every backend keeps exactly what the random stream says of a sample's place in the epoch, whichever rows are
// computed together.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "core/philox.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The definition, from the random stream's own interface.
Floats expect(const DropoutKey& key, int rows, int64_t elements, const Guarded<int64_t>& positions, const Floats& x) {
    const RandomStream stream(key.seed, Purpose::kDropout, key.layer, key.epoch);
    const double p = key.probability;
    const auto threshold = static_cast<uint32_t>(std::floor(p * 4294967296.0));
    const auto scale = static_cast<float>(1.0 / (1.0 - p));
    Floats y(x.size());
    for (int r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < elements; ++i) {
            const auto position = static_cast<uint64_t>(positions[r]);
            const bool kept = stream.bits(static_cast<uint64_t>(i), position) >= threshold;
            y[r * elements + i] = kept ? x[r * elements + i] * scale : 0.0F;
        }
    }
    return y;
}

Guarded<int64_t> random_positions(Random& random, int rows) {
    Guarded<int64_t> positions(rows);
    for (int r = 0; r < rows; ++r) positions[r] = (int64_t{random.in(0, 100)} << 30) + random.in(0, 1 << 29);
    return positions;
}

}  // namespace

TEST_CASE("dropout keeps what the random stream says, on every target and thread count, in place too") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    const float probabilities[] = {0.0F, 0.1F, 0.25F, 0.5F, 0.9F};
    for (int trial = 0; trial < 60; ++trial) {
        const int rows = random.in(1, 6);
        const int64_t elements = trial < 40 ? trial + 1 : random.in(41, trial > 54 ? 9000 : 900);
        const DropoutKey key{static_cast<uint64_t>(random.in(0, 1 << 30)) << 20,
                             static_cast<uint64_t>(random.in(0, 50)), static_cast<uint32_t>(random.in(0, 300)),
                             probabilities[random.in(0, 4)]};
        const Guarded<int64_t> positions = random_positions(random, rows);
        const Floats x(random, rows * elements);
        const Floats expected = expect(key, rows, elements, positions, x);
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", rows " << rows << ", elements " << elements << ", p " << key.probability);
            const OnDevice from(on, x);
            const OnDevice where(on, positions);
            OnDevice<float> y(on, rows * elements);
            OnDevice in_place(on, x);
            on->dropout(on.main(), key, rows, elements, where.data(), from.data(), y.data());
            REQUIRE(same_bytes(y.fetch(), expected));
            on->dropout(on.main(), key, rows, elements, where.data(), in_place.data(), in_place.data());
            REQUIRE(same_bytes(in_place.fetch(), expected));
        }
    }
}

TEST_CASE("a row's dropout does not depend on the rows beside it") {
    Random random;
    const DropoutKey key{7, 2, 1, 0.5F};
    const auto positions = values({int64_t{11}, int64_t{4000000000}, int64_t{12}});
    const Floats x(random, 3 * 50);
    const Floats together = expect(key, 3, 50, positions, x);
    for (const NamedBackend& on : every_backend(2)) {
        INFO(on.name);
        const OnDevice from(on, x);
        const OnDevice where(on, positions);
        OnDevice<float> y(on, 3 * 50);
        for (int r = 2; r >= 0; --r) {
            on->dropout(on.main(), key, 1, 50, where.data() + r, from.data() + r * 50, y.data() + r * 50);
        }
        CHECK(same_bytes(y.fetch(), together));
    }
}

// 1 / (1 - 0.5) = 2 and 1 / (1 - 0.75) = 4 exactly; of 40,000 elements about p are dropped (five standard deviations).
TEST_CASE("about the asked share is dropped, and what is kept is scaled up") {
    const auto backends = every_backend(1);
    const NamedBackend& on = backends.front();
    for (const auto& [p, scale] : {std::pair{0.5F, 2.0F}, std::pair{0.75F, 4.0F}}) {
        const int64_t n = 40000;
        const OnDevice x(on, Floats(n, 1.0F));
        const OnDevice position(on, values({int64_t{3}}));
        OnDevice<float> written(on, n);
        on->dropout(on.main(), {1, 0, 0, p}, 1, n, position.data(), x.data(), written.data());
        const Floats y = written.fetch();
        int64_t dropped = 0;
        for (int64_t i = 0; i < n; ++i) {
            REQUIRE((y[i] == 0.0F || y[i] == scale));
            dropped += y[i] == 0.0F ? 1 : 0;
        }
        CHECK(std::abs(static_cast<double>(dropped) - p * n) < 5 * std::sqrt(n * p * (1 - p)));
    }
}

TEST_CASE("twin: dropout keyed by the row's number instead of its position is other bytes") {
    Random random;
    const DropoutKey key{7, 2, 1, 0.5F};
    const Floats x(random, 2 * 64);
    CHECK(!same_bytes(expect(key, 2, 64, values({int64_t{17}, int64_t{18}}), x),
                      expect(key, 2, 64, values({int64_t{0}, int64_t{1}}), x)));
}

TEST_CASE("a dropout probability outside [0, 1) is refused") {
    for (const NamedBackend& on : every_backend(1)) {
        OnDevice<float> x(on, 1, 1.0F);
        const OnDevice<int64_t> position(on, 1);
        for (const float p : {-0.1F, 1.0F, std::nanf("")}) {
            CHECK_THROWS_AS(on->dropout(on.main(), {1, 0, 0, p}, 1, 1, position.data(), x.data(), x.data()), Error);
        }
    }
}
