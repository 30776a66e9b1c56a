// Relu, sums, scaling, the check for numbers that are not finite, gathered columns and folded rows: the reference's
// bytes on every backend, zeros of both signs, subnormals and infinities among them.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/reference.hpp"
#include "core/canonical_tree.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Numbers with zeros of both signs, subnormals and infinities strewn in.
Floats with_specials(Random& random, int64_t n) {
    const float specials[] = {0.0F, -0.0F, 1e-42F, -1e-42F, kInfinity, -kInfinity};
    Floats x(random, n);
    for (int64_t i = 0; i < n; ++i) {
        if (random.in(0, 3) == 0) x[i] = specials[random.in(0, 5)];
    }
    return x;
}

struct FoldCase {
    int shards, columns;
    ShardRange range;
    std::vector<int64_t> sizes;
    FoldProgram program;
    Floats x{0};
};

FoldCase random_fold(Random& random) {
    FoldCase c{random.in(1, 14), random.in(1, 150), {}, {}, {}};
    if (random.in(0, 3) == 0) c.columns = 1;  // what the losses are
    c.range.begin = random.in(0, c.shards - 1);
    c.range.end = random.in(c.range.begin + 1, c.shards);
    for (int v = 0; v < c.shards; ++v) c.sizes.push_back(random.in(0, 3) == 0 ? 0 : random.in(1, 9));
    c.program = fold_program(c.shards, c.range, c.sizes);
    c.x = Floats(random, int64_t{c.program.rows} * c.columns);
    return c;
}

/// The canonical tree by its own definition, without a fold program: the sum over shards [lo, hi) of one column, from
/// `row` on.
std::optional<float> tree_sum(const FoldCase& c, int lo, int hi, int column, int& row) {
    if (hi - lo == 1) {
        const int64_t samples = c.sizes[static_cast<std::size_t>(lo)];
        if (samples == 0) return std::nullopt;
        float sum = 0.0F;
        for (int64_t i = 0; i < samples; ++i, ++row) sum = sum + c.x[int64_t{row} * c.columns + column];
        return sum;
    }
    const int split = split_point(lo, hi);
    const std::optional<float> left = tree_sum(c, lo, split, column, row);
    const std::optional<float> right = tree_sum(c, split, hi, column, row);
    if (left && right) return *left + *right;
    return left ? left : right;
}

using Roots = std::vector<Floats>;
Roots make_roots(const FoldCase& c) {
    return Roots(c.program.roots.size(), Floats(c.columns));
}

Roots fold_by_definition(const FoldCase& c) {
    Roots roots = make_roots(c);
    for (int column = 0; column < c.columns; ++column) {
        int row = 0;
        for (std::size_t i = 0; i < roots.size(); ++i) {
            roots[i][column] = tree_sum(c, c.program.roots[i].begin, c.program.roots[i].end, column, row).value();
        }
    }
    return roots;
}

Roots fold_on(const NamedBackend& on, const FoldCase& c) {
    const OnDevice x(on, c.x);
    auto roots = on_device(on, make_roots(c));
    on->fold_rows(on.main(), c.program, c.columns, x.data(), pointers(roots));
    return fetch(roots);
}

}  // namespace

TEST_CASE("relu, its backward, add and scale give the reference's bytes on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const int64_t n : sizes_with_tails(random)) {
        const Floats x = with_specials(random, n), other = with_specials(random, n), dy = with_specials(random, n);
        Floats relu(n), sum(n), back = dy, scaled = other;
        const float factor = random.in(0, 1) == 0 ? 1024.0F : 1.1F;  // a loss scale; one that rounds
        reference::relu(n, x.data(), relu.data());
        reference::relu_backward(n, relu.data(), back.data());
        reference::add(n, dy.data(), relu.data(), sum.data());
        reference::scale(n, factor, scaled.data());
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", n " << n);
            const OnDevice from(on, x), left(on, dy);
            OnDevice<float> y(on, n), s(on, n);
            OnDevice d(on, dy);
            on->relu(on.main(), n, from.data(), y.data());
            REQUIRE(same_bytes(y.fetch(), relu));
            on->relu_backward(on.main(), n, y.data(), d.data());
            REQUIRE(same_bytes(d.fetch(), back));
            OnDevice product(on, other);
            on->scale(on.main(), n, factor, product.data());
            REQUIRE(same_bytes(product.fetch(), scaled));
            on->add(on.main(), n, left.data(), y.data(), s.data());
            const Floats got = s.fetch();
            REQUIRE(got.intact());
            for (int64_t i = 0; i < n; ++i) {  // inf - inf is a NaN, whose bits are nobody's promise
                if (!std::isnan(sum[i])) REQUIRE(std::memcmp(&got[i], &sum[i], 4) == 0);
            }
        }
    }
}

TEST_CASE("relu keeps a NaN and turns a negative zero into a positive one") {
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        Floats made(19, 1.0F);
        made[3] = kNaN, made[17] = kNaN, made[4] = -0.0F, made[18] = -0.0F, made[5] = -3.0F;
        const OnDevice x(on, made);
        OnDevice<float> written(on, 19);
        on->relu(on.main(), 19, x.data(), written.data());
        const Floats y = written.fetch();
        CHECK((std::isnan(y[3]) && std::isnan(y[17])));
        CHECK((y[4] == 0.0F && !std::signbit(y[4]) && !std::signbit(y[18]) && !std::signbit(y[5])));
    }
}

TEST_CASE("the finite check finds one bad value anywhere, and the largest float is finite") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    const float bad[] = {kInfinity, -kInfinity, kNaN, -kNaN};
    for (const int64_t n : {1, 7, 16, 17, 33, 40, 16400, 600000}) {
        for (const NamedBackend& on : backends) {
            if (on.name.starts_with("scalar") && n > 100000) continue;
            INFO(on.name << ", n " << n);
            const OnDevice x(on, Floats(n, std::numeric_limits<float>::max()));
            REQUIRE(on->all_finite(on.main(), n, x.data()));
            for (int trial = 0; trial < (n <= 40 ? n : 6); ++trial) {
                const int64_t at = n <= 40 ? trial : random.in(0, static_cast<int>(n) - 1);
                const float one = bad[random.in(0, 3)], fine = -std::numeric_limits<float>::max();
                on->upload(on.main(), &one, x.data() + at, sizeof one);
                REQUIRE(!on->all_finite(on.main(), n, x.data()));
                on->upload(on.main(), &fine, x.data() + at, sizeof fine);
                REQUIRE(on->all_finite(on.main(), n, x.data()));
            }
        }
    }
}

TEST_CASE("values are surely below a limit where every magnitude is, and neither the limit nor a NaN is") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    const float limit = 0x1p40F, under = std::nextafter(limit, 0.0F);
    const float bad[] = {limit, -limit, 2 * limit, kInfinity, -kInfinity, kNaN};
    for (const int64_t n : {1, 15, 33, 16400, 300000}) {
        for (const NamedBackend& on : backends) {
            if (!on->host_sees_device()) continue;  // it may leave the question open
            INFO(on.name << ", n " << n);
            const OnDevice x(on, Floats(n, under));
            REQUIRE(on->surely_below(on.main(), n, x.data(), limit));
            for (const float one : bad) {
                const int64_t at = random.in(0, static_cast<int>(n) - 1);
                on->upload(on.main(), &one, x.data() + at, sizeof one);
                REQUIRE(!on->surely_below(on.main(), n, x.data(), limit));
                const float fine = -under;
                on->upload(on.main(), &fine, x.data() + at, sizeof fine);
                REQUIRE(on->surely_below(on.main(), n, x.data(), limit));
            }
        }
    }
}

TEST_CASE("columns are gathered in the order asked for, repeated ones and all") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (int trial = 0; trial < 30; ++trial) {
        const int rows = random.in(1, 90), width = random.in(1, trial > 26 ? 900 : 50);
        const Floats from(random, int64_t{rows} * width);
        Guarded<int32_t> columns(width);
        for (int j = 0; j < width; ++j) columns[j] = random.in(0, width - 1);
        Floats expected(from.size());
        for (int64_t i = 0; i < from.size(); ++i) expected[i] = from[i - i % width + columns[i % width]];
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", rows " << rows << ", width " << width);
            const OnDevice x(on, from);
            const OnDevice order(on, columns);
            OnDevice<float> to(on, from.size());
            on->gather_columns(on.main(), rows, width, order.data(), x.data(), to.data());
            REQUIRE(same_bytes(to.fetch(), expected));
        }
    }
}

TEST_CASE("rows are summed per shard and shards in the canonical tree's order, on every target and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (int trial = 0; trial < 150; ++trial) {
        const FoldCase c = random_fold(random);
        const Roots expected = fold_by_definition(c);
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", shards " << c.shards << " [" << c.range.begin << ", " << c.range.end << "), columns "
                         << c.columns);
            REQUIRE(same_bytes(fold_on(on, c), expected));
        }
    }
}

TEST_CASE("a wide fold is the same on threads") {
    Random random;
    INFO("seed " << random.seed());
    FoldCase c{4, 1037, {0, 4}, {9, 0, 13, 11}, {}};
    c.program = fold_program(c.shards, c.range, c.sizes);
    c.x = Floats(random, int64_t{c.program.rows} * c.columns);
    const Roots expected = fold_by_definition(c);
    for (const NamedBackend& on : every_backend()) {
        INFO(on.name);
        REQUIRE(same_bytes(fold_on(on, c), expected));
    }
}

TEST_CASE("twin: shards added from left to right are other bytes") {
    Random random;
    INFO("seed " << random.seed());
    FoldCase c{8, 100, {0, 8}, std::vector<int64_t>(8, 3), {}};
    c.program = fold_program(c.shards, c.range, c.sizes);
    c.x = Floats(random, int64_t{c.program.rows} * c.columns);
    FoldProgram wrong = c.program;
    for (std::size_t i = 0; i < wrong.leaves.size(); ++i) wrong.leaves[i].adds = i == 0 ? 0 : 1;
    Roots roots = make_roots(c);
    reference::fold_rows(wrong, c.columns, 0, c.columns, c.x.data(), pointers(roots));
    const Roots right = fold_by_definition(c);
    int differing = 0;
    for (int64_t i = 0; i < c.columns; ++i) differing += roots[0][i] != right[0][i] ? 1 : 0;
    CHECK(differing > 20);
}
