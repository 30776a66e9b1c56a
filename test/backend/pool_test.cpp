#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/pool_plan.hpp"
#include "backend/cpu/reference.hpp"
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
    for (const auto& [name, backend] : backends) {
        INFO(name << ", " << describe(s, rows));
        const auto pool = backend->plan_pool(s);
        PoolResult r{Floats(out, -5.0F), Floats(in, -5.0F), Floats(in, -5.0F), Bytes(out)};
        uint8_t* taps = s.kind == PoolKind::kMax ? r.taps.data() : nullptr;
        pool->forward(backend->main(), rows, x.data(), r.y.data(), taps);
        REQUIRE(same_bytes(r.y, expected.y));
        REQUIRE(same_bytes(r.taps, expected.taps));
        pool->backward(backend->main(), rows, dy.data(), taps, nullptr, r.dx.data());
        REQUIRE(same_bytes(r.dx, expected.dx));
        pool->backward(backend->main(), rows, dy.data(), taps, mask.data(), r.masked_dx.data());
        REQUIRE(same_bytes(r.masked_dx, expected.masked_dx));
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
    for (const auto& [name, backend] : every_backend(1)) {
        INFO(name);
        const auto pool = backend->plan_pool(s);
        PoolResult r{Floats(5 * out), Floats(5 * in), Floats(0), Bytes(5 * out)};
        for (const auto& [first, rows] : {std::pair{3, 2}, std::pair{0, 3}}) {
            pool->forward(backend->main(), rows, x.data() + first * in, r.y.data() + first * out,
                          r.taps.data() + first * out);
            pool->backward(backend->main(), rows, dy.data() + first * out, r.taps.data() + first * out, nullptr,
                           r.dx.data() + first * in);
        }
        CHECK(same_bytes(r.y, expected.y));
        CHECK(same_bytes(r.taps, expected.taps));
        CHECK(same_bytes(r.dx, expected.dx));
    }
}

// One window over  1 4   the first of the two equal maxima is tap 1 (kh 0, kw 1).
//                  4 2
TEST_CASE("the first maximum wins, takes the gradient alone, and a masked gradient counts as zero") {
    const PoolShape s = square(PoolKind::kMax, 2, 1, 2, 2);
    const float x[] = {1, 4, 4, 2}, dy[] = {3}, off[] = {0};
    for (const auto& [name, backend] : every_backend(1)) {
        INFO(name);
        float y[1], dx[4];
        uint8_t taps[1];
        const auto pool = backend->plan_pool(s);
        pool->forward(backend->main(), 1, x, y, taps);
        CHECK((y[0] == 4.0F && taps[0] == 1));
        pool->backward(backend->main(), 1, dy, taps, nullptr, dx);
        CHECK((dx[0] == 0.0F && dx[1] == 3.0F && dx[2] == 0.0F && dx[3] == 0.0F));
        pool->backward(backend->main(), 1, dy, taps, off, dx);
        CHECK((dx[0] == 0.0F && dx[1] == 0.0F && dx[2] == 0.0F && dx[3] == 0.0F));
    }
}

// 3 x 1 input 1 2 6, kernel 2 x 1, stride 1, one row of padding above: windows {1}, {1, 2}, {2, 6} average 1, 1.5, 4.
// dy = 4, 6, 2 gives 4/1 + 6/2 = 7, 6/2 + 2/2 = 4, 2/2 = 1.
TEST_CASE("a padded tap is no tap: averages divide by the taps inside the image") {
    PoolShape s{PoolKind::kAverage, {3, 1, 1}, 2, 1, 1, 1, 1, 0, 0, 0};
    const float x[] = {1, 2, 6}, dy[] = {4, 6, 2};
    for (const auto& [name, backend] : every_backend(1)) {
        INFO(name);
        float y[3], dx[3];
        const auto pool = backend->plan_pool(s);
        pool->forward(backend->main(), 1, x, y, nullptr);
        CHECK((y[0] == 1.0F && y[1] == 1.5F && y[2] == 4.0F));
        pool->backward(backend->main(), 1, dy, nullptr, nullptr, dx);
        CHECK((dx[0] == 7.0F && dx[1] == 4.0F && dx[2] == 1.0F));
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
