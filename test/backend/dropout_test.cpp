#include <catch2/catch.hpp>
#include <cmath>

#include "backend/cpu/kernels.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The definition, from the random stream's own interface.
Floats expect(const DropoutKey& key, int rows, int64_t elements, const std::vector<int64_t>& positions,
              const Floats& x) {
    const RandomStream stream(key.seed, Purpose::kDropout, key.layer, key.epoch);
    const double p = key.probability;
    const auto threshold = static_cast<uint32_t>(std::floor(p * 4294967296.0));
    const auto scale = static_cast<float>(1.0 / (1.0 - p));
    Floats y(x.size());
    for (int r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < elements; ++i) {
            const auto position = static_cast<uint64_t>(positions[static_cast<std::size_t>(r)]);
            const bool kept = stream.bits(static_cast<uint64_t>(i), position) >= threshold;
            y[r * elements + i] = kept ? x[r * elements + i] * scale : 0.0F;
        }
    }
    return y;
}

std::vector<int64_t> random_positions(Random& random, int rows) {
    std::vector<int64_t> positions;
    for (int r = 0; r < rows; ++r) positions.push_back((int64_t{random.in(0, 100)} << 30) + random.in(0, 1 << 29));
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
        const std::vector<int64_t> positions = random_positions(random, rows);
        const Floats x(random, rows * elements);
        const Floats expected = expect(key, rows, elements, positions, x);
        for (const auto& [name, backend] : backends) {
            INFO(name << ", rows " << rows << ", elements " << elements << ", p " << key.probability);
            Floats y(rows * elements), in_place = x;
            backend->dropout(backend->main(), key, rows, elements, positions.data(), x.data(), y.data());
            REQUIRE(same_bytes(y, expected));
            backend->dropout(backend->main(), key, rows, elements, positions.data(), in_place.data(), in_place.data());
            REQUIRE(same_bytes(in_place, expected));
        }
    }
}

TEST_CASE("a row's dropout does not depend on the rows beside it") {
    Random random;
    const DropoutKey key{7, 2, 1, 0.5F};
    const std::vector<int64_t> positions = {11, 4000000000, 12};
    const Floats x(random, 3 * 50);
    const Floats together = expect(key, 3, 50, positions, x);
    for (const auto& [name, backend] : every_backend(2)) {
        INFO(name);
        Floats y(3 * 50);
        for (int r = 2; r >= 0; --r) {
            backend->dropout(backend->main(), key, 1, 50, positions.data() + r, x.data() + r * 50, y.data() + r * 50);
        }
        CHECK(same_bytes(y, together));
    }
}

TEST_CASE("the elements beyond 2^34, whose block number has a high word, have bits of their own") {
    const DropoutMask mask{RandomStream(5, Purpose::kDropout, 3, 1).key(), 1U << 31, 2.0F};
    const RandomStream stream(5, Purpose::kDropout, 3, 1);
    const int64_t first = (int64_t{1} << 34) - 32;
    const Floats x(100, 1.0F);
    for (const Isa isa : available_isas()) {
        INFO(isa_name(isa));
        Floats y(100);
        dropout_kernels(isa).row(mask, 9, first, 100, x.data(), y.data());
        for (int64_t i = 0; i < 100; ++i) {
            const bool kept = stream.bits(static_cast<uint64_t>(first + i), 9) >= mask.threshold;
            CHECK(y[i] == (kept ? 2.0F : 0.0F));
        }
    }
}

// 1 / (1 - 0.5) = 2 and 1 / (1 - 0.75) = 4 exactly; of 40,000 elements about p are dropped (five standard deviations).
TEST_CASE("about the asked share is dropped, and what is kept is scaled up") {
    for (const auto& [p, scale] : {std::pair{0.5F, 2.0F}, std::pair{0.75F, 4.0F}}) {
        const auto backend = make_cpu_backend({});
        const int64_t n = 40000;
        const Floats x(n, 1.0F);
        Floats y(n);
        const int64_t position = 3;
        backend->dropout(backend->main(), {1, 0, 0, p}, 1, n, &position, x.data(), y.data());
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
    CHECK(!same_bytes(expect(key, 2, 64, {17, 18}, x), expect(key, 2, 64, {0, 1}, x)));
}

TEST_CASE("a dropout probability outside [0, 1) is refused") {
    const auto backend = make_cpu_backend({});
    float x[1] = {1};
    const int64_t position = 0;
    for (const float p : {-0.1F, 1.0F, std::nanf("")}) {
        CHECK_THROWS_AS(backend->dropout(backend->main(), {1, 0, 0, p}, 1, 1, &position, x, x), Error);
    }
}
