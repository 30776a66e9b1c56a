// Maxima and averages over windows of any shape, with ties and padding: the reference's bytes on every backend, and
// what the definition says of them.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/reference.hpp"
#include "backend/pool_windows.hpp"
#include "core/error.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Bytes = Guarded<uint8_t>;

bool has_taps_everywhere(const PoolShape& s) {
    try {
        check_pool_shape(s);
    } catch (const Error&) {
        return false;
    }
    return true;
}

PoolShape random_shape(Random& random, PoolKind kind) {
    for (;;) {
        PoolShape s;
        s.kind = kind;
        s.in = {random.in(1, 13), random.in(1, 13), random.in(1, 40)};
        s.kernel_h = random.in(1, 4), s.kernel_w = random.in(1, 4);
        if (random.in(0, 4) == 0) s.kernel_h = random.in(5, 13), s.kernel_w = random.in(5, 13);
        s.stride_h = random.in(1, 4), s.stride_w = random.in(1, 4);
        if (random.in(0, 2) == 0) s.stride_h = s.kernel_h, s.stride_w = s.kernel_w;
        if (random.in(0, 1) == 0) {
            s.pad_top = random.in(0, 2), s.pad_bottom = random.in(0, 2);
            s.pad_left = random.in(0, 2), s.pad_right = random.in(0, 2);
        }
        if (has_taps_everywhere(s)) return s;
    }
}

/// Few distinct values, so that maxima are often shared.
Floats with_ties(Random& random, int64_t n) {
    Floats x(random, n);
    for (int64_t i = 0; i < n; ++i) {
        if (random.in(0, 1) == 0) x[i] = static_cast<float>(random.in(-2, 2));
    }
    return x;
}

std::string describe(const PoolShape& s, int rows) {
    return fmt::format("rows {} in {}x{}x{} kernel {}x{} stride {}x{} pads {} {} {} {}", rows, s.in.height, s.in.width,
                       s.in.channels, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_top, s.pad_bottom,
                       s.pad_left, s.pad_right);
}

struct PoolResult {
    Floats y, dx, masked_dx;
    Bytes taps;
};

/// The reference on whole operations; dy is also masked by a relu'd copy of y.
PoolResult expect(const PoolShape& s, int rows, const Floats& x, const Floats& dy, const Floats& mask) {
    const int64_t in = rows * s.in.elements(), out = rows * s.out().elements();
    const int64_t out_lines = int64_t{rows} * s.out_h(), in_lines = int64_t{rows} * s.in.height;
    PoolResult r{Floats(out), Floats(in), Floats(in), Bytes(out)};
    if (s.kind == PoolKind::kMax) {
        reference::max_pool_forward(s, 0, out_lines, x.data(), r.y.data(), r.taps.data());
        reference::max_pool_backward(s, 0, in_lines, dy.data(), r.taps.data(), nullptr, r.dx.data());
        reference::max_pool_backward(s, 0, in_lines, dy.data(), r.taps.data(), mask.data(), r.masked_dx.data());
    } else {
        reference::average_pool_forward(s, 0, out_lines, x.data(), r.y.data());
        reference::average_pool_backward(s, 0, in_lines, dy.data(), nullptr, r.dx.data());
        reference::average_pool_backward(s, 0, in_lines, dy.data(), mask.data(), r.masked_dx.data());
    }
    return r;
}

void check_against_reference(const std::vector<NamedBackend>& backends, const PoolShape& s, int rows, Random& random) {
    const int64_t in = rows * s.in.elements(), out = rows * s.out().elements();
    const Floats x = with_ties(random, in), dy(random, out), mask = with_ties(random, out);
    const PoolResult expected = expect(s, rows, x, dy, mask);
    for (const NamedBackend& on : backends) {
        INFO(on.name << ", " << describe(s, rows));
        const auto pool = on->plan_pool(s);
        const OnDevice from(on, x), gradient(on, dy), masked_by(on, mask);
        OnDevice<float> y(on, out, -5.0F), dx(on, in, -5.0F), masked_dx(on, in, -5.0F);
        OnDevice<uint8_t> won(on, out);
        uint8_t* taps = s.kind == PoolKind::kMax ? won.data() : nullptr;
        pool->forward(on.main(), rows, from.data(), y.data(), taps);
        REQUIRE(same_bytes(y.fetch(), expected.y));
        REQUIRE(same_bytes(won.fetch(), expected.taps));
        pool->backward(on.main(), rows, gradient.data(), taps, nullptr, dx.data());
        REQUIRE(same_bytes(dx.fetch(), expected.dx));
        pool->backward(on.main(), rows, gradient.data(), taps, masked_by.data(), masked_dx.data());
        REQUIRE(same_bytes(masked_dx.fetch(), expected.masked_dx));
    }
}

PoolShape square(PoolKind kind, int size, int channels, int kernel, int stride, int pad = 0) {
    return {kind, {size, size, channels}, kernel, kernel, stride, stride, pad, pad, pad, pad};
}

}  // namespace

TEST_CASE("pooling of random shapes gives the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (int trial = 0; trial < 120; ++trial) {
        const PoolKind kind = trial % 2 == 0 ? PoolKind::kMax : PoolKind::kAverage;
        check_against_reference(backends, random_shape(random, kind), random.in(1, 4), random);
    }
}

TEST_CASE("pooling that wakes the threads, on few and on many rows, gives the reference's bytes") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
        check_against_reference(backends, square(kind, 28, 48, 2, 2), 1, random);
        check_against_reference(backends, square(kind, 15, 33, 3, 2, 1), 7, random);
        check_against_reference(backends, square(kind, 29, 16, 2, 2), 5, random);
    }
    check_against_reference(backends, square(PoolKind::kAverage, 20, 35, 19, 1), 3, random);  // 361 taps: two blocks
    check_against_reference(backends, square(PoolKind::kAverage, 17, 5, 19, 2, 9), 2, random);
}

TEST_CASE("an operation may be run on any part of its rows") {
    Random random;
    INFO("seed " << random.seed());
    const PoolShape s = square(PoolKind::kMax, 9, 19, 3, 2, 1);
    const int64_t in = s.in.elements(), out = s.out().elements();
    const Floats x = with_ties(random, 5 * in), dy(random, 5 * out);
    const PoolResult expected = expect(s, 5, x, dy, dy);
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const auto pool = on->plan_pool(s);
        const OnDevice from(on, x), gradient(on, dy);
        OnDevice<float> y(on, 5 * out), dx(on, 5 * in);
        OnDevice<uint8_t> taps(on, 5 * out);
        for (const auto& [first, rows] : {std::pair{3, 2}, std::pair{0, 3}}) {
            pool->forward(on.main(), rows, from.data() + first * in, y.data() + first * out, taps.data() + first * out);
            pool->backward(on.main(), rows, gradient.data() + first * out, taps.data() + first * out, nullptr,
                           dx.data() + first * in);
        }
        CHECK(same_bytes(y.fetch(), expected.y));
        CHECK(same_bytes(taps.fetch(), expected.taps));
        CHECK(same_bytes(dx.fetch(), expected.dx));
    }
}

// One window over  1 4   the first of the two equal maxima is tap 1 (kh 0, kw 1).
//                  4 2
TEST_CASE("the first maximum wins, takes the gradient alone, and a masked gradient counts as zero") {
    const PoolShape s = square(PoolKind::kMax, 2, 1, 2, 2);
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice x(on, values({1.0F, 4.0F, 4.0F, 2.0F})), dy(on, values({3.0F})), off(on, values({0.0F}));
        OnDevice<float> y(on, 1), dx(on, 4, -5.0F);
        OnDevice<uint8_t> taps(on, 1);
        const auto pool = on->plan_pool(s);
        pool->forward(on.main(), 1, x.data(), y.data(), taps.data());
        CHECK((y.fetch()[0] == 4.0F && taps.fetch()[0] == 1));
        pool->backward(on.main(), 1, dy.data(), taps.data(), nullptr, dx.data());
        CHECK(same_bytes(dx.fetch(), values({0.0F, 3.0F, 0.0F, 0.0F})));
        pool->backward(on.main(), 1, dy.data(), taps.data(), off.data(), dx.data());
        CHECK(same_bytes(dx.fetch(), values({0.0F, 0.0F, 0.0F, 0.0F})));
    }
}

// 3 x 1 input 1 2 6, kernel 2 x 1, stride 1, one row of padding above: windows {1}, {1, 2}, {2, 6} average 1, 1.5, 4.
// dy = 4, 6, 2 gives 4/1 + 6/2 = 7, 6/2 + 2/2 = 4, 2/2 = 1.
TEST_CASE("a padded tap is no tap: averages divide by the taps inside the image") {
    PoolShape s{PoolKind::kAverage, {3, 1, 1}, 2, 1, 1, 1, 1, 0, 0, 0};
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const OnDevice x(on, values({1.0F, 2.0F, 6.0F})), dy(on, values({4.0F, 6.0F, 2.0F}));
        OnDevice<float> y(on, 3), dx(on, 3);
        const auto pool = on->plan_pool(s);
        pool->forward(on.main(), 1, x.data(), y.data(), nullptr);
        CHECK(same_bytes(y.fetch(), values({1.0F, 1.5F, 4.0F})));
        pool->backward(on.main(), 1, dy.data(), nullptr, nullptr, dx.data());
        CHECK(same_bytes(dx.fetch(), values({7.0F, 4.0F, 1.0F})));
    }
}

TEST_CASE("twin: a large average window added in one plain chain is other bytes") {
    Random random;
    INFO("seed " << random.seed());
    const PoolShape s = square(PoolKind::kAverage, 20, 64, 20, 1);
    const Floats x(random, s.in.elements());
    int differing = 0;
    Floats y(64);
    reference::average_pool_forward(s, 0, 1, x.data(), y.data());
    for (int c = 0; c < 64; ++c) {
        float sum = 0.0F;
        for (int i = 0; i < 400; ++i) sum = sum + x[i * 64 + c];
        if (sum / 400.0F != y[c]) ++differing;
    }
    CHECK(differing > 8);
}

TEST_CASE("a pooling shape that cannot be is refused in one line") {
    CHECK_THROWS_WITH(check_pool_shape(square(PoolKind::kMax, 2, 1, 3, 1)), Catch::Contains("does not fit"));
    CHECK_THROWS_WITH(check_pool_shape(square(PoolKind::kAverage, 4, 1, 2, 1, 2)), Catch::Contains("padding"));
    CHECK_THROWS_WITH(check_pool_shape(square(PoolKind::kMax, 16, 1, 16, 1)), Catch::Contains("more than 255 taps"));
    CHECK_THROWS_WITH(check_pool_shape(square(PoolKind::kMax, 4, 1, 2, 0)), Catch::Contains("must be positive"));
    CHECK_NOTHROW(check_pool_shape(square(PoolKind::kMax, 15, 1, 15, 1)));
    CHECK_NOTHROW(check_pool_shape(square(PoolKind::kAverage, 16, 1, 16, 1)));
}
