// Dense layers: every backend (on the CPU every instruction set and thread count) gives the bytes of the plain loops
// that define the sums.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "backend/cpu/reference_gemm.hpp"
#include "core/canonical_tree.hpp"
#include "dense_case.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

void check_case(DenseCase& c, Random& random, const std::vector<NamedBackend>& backends) {
    c.fill(random);
    INFO("seed " << random.seed() << ": " << c.text());
    const DenseResult expected = reference_result(c);
    for (const NamedBackend& on : backends) {
        INFO(on.name);
        REQUIRE(same(backend_result(c, on), expected));
    }
}

}  // namespace

TEST_CASE("dense layers give the reference's bytes") {
    Random random;
    const auto backends = every_backend();
    for (int i = 0; i < 300; ++i) {
        DenseCase c = random_dense(random, 400'000);
        check_case(c, random, backends);
    }
}

TEST_CASE("dense layers give the reference's bytes in every way that the number of samples chooses") {
    Random random;
    const auto backends = every_backend(2);
    struct Way {
        int in, out;
        std::vector<int64_t> sizes;
    };
    const std::vector<Way> ways = {
        {1030, 9, {1}},                         // one row, three blocks of k
        {40, 33, {15}},                         // features on the lanes, W packed on the way
        {530, 70, {16}},                        // samples on the lanes, two blocks of k
        {37, 1030, {3, 0, 1}},                  // data gradient of three blocks
        {33, 20, {50, 45}},                     // W in place for the data gradient
        {70, 21, {50, 46}},                     // W packed for the data gradient
        {31, 26, {25}},                         // tiles of many rows and two vectors of samples
        {144, 13, {37, 0, 3}},                  // three vectors of samples; a whole panel of X and a part
        {112, 49, {30, 1, 33}},                 // four vectors of samples; three of X in its last panel
        {19, 17, {255}},                        // the most samples on the lanes where sums are short
        {18, 23, {256}},                        // W packed on the way
        {18, 23, {512}},                        // one block of samples, W packed
        {21, 13, {513, 1100, 0, 1}},            // shards of several blocks of samples
        {1100, 40, {300}},                      // three blocks of k, W packed
        {2050, 9, {200, 56}},                   // so long sums that 256 samples are still on the lanes
        {34, 20, std::vector<int64_t>(70, 1)},  // more sums of shards wait than registers hold
        {20, 1540, {5}},                        // few outputs and long sums: split where there are many processors
    };
    for (const Way& way : ways) {
        DenseCase c;
        c.in = way.in;
        c.out = way.out;
        c.sizes = way.sizes;
        c.shards = static_cast<int>(way.sizes.size());
        c.range = {0, c.shards};
        check_case(c, random, backends);
    }
}

TEST_CASE("a rank without samples runs dense layers and writes nothing") {
    Random random;
    for (const NamedBackend& on : every_backend(2)) {
        DenseCase c;
        c.in = 5;
        c.out = 3;
        c.shards = 3;
        c.sizes = {4, 0, 2};
        c.range = {1, 2};
        c.fill(random);
        REQUIRE(c.fold.rows == 0);
        REQUIRE(c.fold.roots.empty());
        const DenseResult r = backend_result(c, on);
        REQUIRE(r.y.intact());
    }
}

TEST_CASE("the dense weight gradient is the canonical tree of the shards' own gradients") {
    Random random;
    const auto backends = every_backend(1);
    for (int i = 0; i < 12; ++i) {
        DenseCase c = random_dense(random, 60'000);
        c.range = {0, c.shards};
        c.fill(random);
        if (c.fold.rows == 0) continue;
        // Each shard alone, then the tree by its definition: left part, right part, an empty part passes the other
        // through.
        std::vector<std::optional<Floats>> leaves;
        int64_t row = 0;
        for (const int64_t size : c.sizes) {
            leaves.emplace_back();
            if (size > 0) {
                const std::vector<int64_t> alone = {size};
                leaves.back() = Floats(int64_t{c.out} * c.in);
                float* const dw = leaves.back()->data();
                reference_dense_weight_gradient(fold_program(1, {0, 1}, alone), c.in, c.out, {0, c.out},
                                                c.x.data() + row * c.in, c.dy.data() + row * c.out, {&dw, 1});
            }
            row += size;
        }
        const auto tree = [&](const auto& self, int lo, int hi) -> std::optional<Floats> {
            if (hi - lo == 1) return leaves[static_cast<std::size_t>(lo)];
            auto left = self(self, lo, split_point(lo, hi)), right = self(self, split_point(lo, hi), hi);
            if (!left) return right;
            if (right) {
                for (int64_t j = 0; j < left->size(); ++j) (*left)[j] = (*left)[j] + (*right)[j];
            }
            return left;
        };
        const std::optional<Floats> expected = tree(tree, 0, c.shards);
        for (const NamedBackend& on : backends) {
            INFO("seed " << random.seed() << ": " << c.text() << " on " << on.name);
            const DenseResult r = backend_result(c, on);
            REQUIRE(r.dw.size() == 1);
            REQUIRE(same_bytes(r.dw[0], *expected));
        }
    }
}

TEST_CASE("rows may be split over calls of dense layers") {
    Random random;
    for (const NamedBackend& on : every_backend(2)) {
        DenseCase whole;
        whole.in = 530;
        whole.out = 45;
        whole.sizes = {37};
        whole.fill(random);
        const DenseResult expected = backend_result(whole, on);
        for (const int cut : {1, 5, 18, 36}) {
            const OnDevice x(on, whole.x), w(on, whole.w), bias(on, whole.b), dy(on, whole.dy);
            const OnDevice<float> y(on, expected.y.size()), dx(on, expected.dx.size());
            for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, 37}}) {
                const std::vector<int64_t> rows = {end - begin};
                const auto dense = on->plan_dense(whole.in, whole.out, fold_program(1, {0, 1}, rows), false);
                dense->forward(on.main(), x.data() + begin * whole.in, w.data(), bias.data(),
                               y.data() + begin * whole.out);
                dense->backward_data(on.main(), dy.data() + begin * whole.out, w.data(), dx.data() + begin * whole.in);
                on->wait(on.main());  // the plan goes
            }
            INFO(on.name << ", cut at " << cut);
            REQUIRE(same_bytes(y.fetch(), expected.y));
            REQUIRE(same_bytes(dx.fetch(), expected.dx));
        }
    }
}

TEST_CASE("another block length gives other bits, so that these tests can fail") {
    Random random;
    DenseCase c;
    c.shards = 2;
    c.range = {0, 2};
    c.in = 300;
    c.out = 300;
    c.sizes = {300, 3};
    c.fill(random);
    const DenseResult expected = reference_result(c), other = reference_result(c, 256);
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const DenseResult r = backend_result(c, on);
        CHECK(same(r, expected));
        CHECK_FALSE(same_bytes(r.y, other.y));
        CHECK_FALSE(same_bytes(r.dx, other.dx));
        CHECK_FALSE(same_bytes(r.dw[0], other.dw[0]));
    }
}

TEST_CASE("a product that underflows to -0 is +0 in outputs and stays -0 in a weight gradient") {
    Random random;
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        DenseCase c;
        c.bias = false;
        c.sizes = {1};
        c.fill(random);
        c.x[0] = 1e-30F;
        c.w[0] = -1e-30F;
        c.dy[0] = -1e-30F;
        const DenseResult r = backend_result(c, on);
        CHECK(r.y[0] == 0.0F);
        CHECK_FALSE(std::signbit(r.y[0]));
        CHECK(r.dw[0][0] == 0.0F);
        CHECK(std::signbit(r.dw[0][0]));
        CHECK(same(r, reference_result(c)));
    }
}

TEST_CASE("dense layers with long sums may be under way on several streams at once") {
    Random random;
    constexpr int kLayers = 4;
    std::vector<DenseCase> cases(kLayers);
    std::vector<DenseResult> expected;
    for (DenseCase& c : cases) {
        c.in = expected.size() % 2 == 0 ? 1100 : 24;
        c.out = expected.size() % 2 == 0 ? 24 : 1100;
        c.shards = 3;
        c.range = {0, 3};
        c.sizes = {1, 2, 1};
        c.fill(random);
        expected.push_back(reference_result(c));
    }
    for (const NamedBackend& on : every_backend(2)) {
        INFO("seed " << random.seed() << " on " << on.name);
        std::vector<std::unique_ptr<DenseOnDevice>> layers;
        for (const DenseCase& c : cases) layers.push_back(std::make_unique<DenseOnDevice>(c, on));
        const std::vector<ShardRange> ranges = on->split_items(kLayers);
        on->for_each_range(ranges, [&](Stream& stream, int range) {
            const ShardRange own = ranges[static_cast<std::size_t>(range)];
            for (int i = own.begin; i < own.end; ++i) layers[static_cast<std::size_t>(i)]->run(stream);
        });
        for (std::size_t i = 0; i < cases.size(); ++i) REQUIRE(same(layers[i]->fetch(), expected[i]));
    }
}

TEST_CASE("NaN and infinity stay what they are through dense layers and relu") {
    Random random;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const auto like = [](const Floats& a, const Floats& b) {
        for (int64_t i = 0; i < a.size(); ++i) {
            if (!(std::isnan(a[i]) ? std::isnan(b[i]) : a[i] == b[i])) return false;
        }
        return a.size() == b.size();
    };
    for (const int rows : {3, 20, 200}) {
        DenseCase c;
        c.in = 50;
        c.out = 21;
        c.relu = true;
        c.sizes = {rows};
        c.fill(random);
        c.x[70] = kNaN;
        c.x[110] = kInfinity;
        c.w[20 * 50 + 3] = kNaN;
        c.w[3 * 50 + 7] = -kInfinity;
        c.b[8] = kNaN;
        c.dy[25] = kInfinity;
        c.dy[26] = kNaN;
        const DenseResult expected = reference_result(c);
        REQUIRE(std::isnan(expected.y[20]));
        REQUIRE(std::isnan(expected.y[8]));
        for (const NamedBackend& on : every_backend(1)) {
            INFO(on.name << ", " << rows << " rows");
            const DenseResult r = backend_result(c, on);
            CHECK(like(expected.y, r.y));
            CHECK(like(expected.dx, r.dx));
            CHECK(like(expected.dw[0], r.dw[0]));
            CHECK(like(expected.db[0], r.db[0]));
        }
    }
}

TEST_CASE("dense layers with more sums between blocks of k than a scratch holds give the reference's bytes",
          "[.long]") {
    Random random;
    DenseCase c;
    c.in = 513;
    c.out = 4100;
    c.sizes = {193};
    check_case(c, random, every_backend(2));
}

TEST_CASE("dense layers give the reference's bytes over many random shapes", "[.long]") {
    Random random;
    const auto backends = every_backend();
    for (int i = 0; i < 1500; ++i) {
        DenseCase c = random_dense(random, 1'500'000);
        check_case(c, random, backends);
    }
}
