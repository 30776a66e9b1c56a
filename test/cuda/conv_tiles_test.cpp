// Convolutions of defined arithmetic: every tile, alignment and way to add the blocks of a weight gradient gives the
// bytes of the plain loops that define the sums. Shapes at random are test/backend/conv_test.cpp's.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backend/cpu/reference_gemm.hpp"
#include "core/error.hpp"
#include "cuda/backend/conv.hpp"
#include "cuda/backend/conv_plan.hpp"
#include "test/cuda/vendor_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr ConvTile kTiles[] = {ConvTile::k128x128, ConvTile::k128x64, ConvTile::k64x64,
                               ConvTile::k128x32,  ConvTile::k128x16, ConvTile::k32x32};

ConvShape shape_of(SampleShape in, int out, int kernel, int stride, int pad, int groups = 1, int dilation = 1) {
    ConvShape s;
    s.in = in;
    s.out_channels = out;
    s.kernel_h = s.kernel_w = kernel;
    s.stride_h = s.stride_w = stride;
    s.dilation_h = s.dilation_w = dilation;
    s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = pad;
    s.groups = groups;
    return s;
}

struct Sums {
    Numbers y, dx, dw, db;
};

struct Case {
    ConvShape shape;
    int rows;
    Numbers x, w, bias, dy;
    Case(const ConvShape& s, int samples, unsigned seed = 1)
        : shape(s),
          rows(samples),
          x(random_numbers(rows * s.in.elements(), seed)),
          w(random_numbers(s.weights(), seed + 1, 0.1F)),
          bias(random_numbers(s.out_channels, seed + 2)),
          dy(random_numbers(rows * s.out().elements(), seed + 3)) {
        for (std::size_t i = 0; i < dy.size(); i += 3) dy[i] = 0;
    }
    std::string text() const {
        return fmt::format(
            "{} rows of {}x{}x{} -> {} channels, kernel {}, stride {}, dilation {}, padding {}, {} groups", rows,
            shape.in.height, shape.in.width, shape.in.channels, shape.out_channels, shape.kernel_h, shape.stride_h,
            shape.dilation_h, shape.pad_top, shape.groups);
    }
};

Sums reference_sums(const Case& c) {
    Sums s{Numbers(c.dy.size()), Numbers(c.x.size()), Numbers(c.w.size()), Numbers(c.bias.size())};
    reference_conv_forward(c.shape, c.rows, c.x.data(), c.w.data(), c.bias.data(), true, s.y.data());
    reference_conv_backward_data(c.shape, c.rows, c.dy.data(), c.w.data(), s.dx.data());
    reference_conv_weight_gradient(c.shape, c.rows, {0, c.shape.out_channels}, c.x.data(), c.dy.data(), s.dw.data(),
                                   kChainPositions);
    reference_channel_sums(int64_t{c.rows} * c.shape.out_h() * c.shape.out_w(), c.shape.out_channels, c.dy.data(),
                           s.db.data());
    return s;
}

Sums device_sums(CudaContext& context, const Case& c, const ConvTuning& tuning, int shift) {
    const auto conv = make_cuda_conv(context, c.shape, true, true, tuning);
    conv->plan_rows(c.rows);
    const OnGpu x(context, c.x, shift), w(context, c.w, shift), bias(context, c.bias, shift), dy(context, c.dy, shift);
    const OnGpu y(context, static_cast<int64_t>(c.dy.size()), shift);
    const OnGpu dx(context, static_cast<int64_t>(c.x.size()), shift);
    const OnGpu leaf(context, conv->leaf_elements(), shift);
    const OnGpu dw(context, static_cast<int64_t>(c.w.size())), db(context, static_cast<int64_t>(c.bias.size()));
    Stream& main = context.main();
    conv->prepare(main, w.data());
    conv->forward(main, c.rows, x.data(), bias.data(), y.data());
    conv->backward_data(main, c.rows, dy.data(), dx.data());
    conv->backward_weights(main, c.rows, x.data(), dy.data(), leaf.data());
    conv->store_gradient(main, leaf.data(), dw.data(), db.data());
    return {y.fetch(), dx.fetch(), dw.fetch(), db.fetch()};
}

// The same values, where NaN is like NaN.
bool like(const Numbers& a, const Numbers& b) {
    const auto same = [](float l, float r) { return std::isnan(l) ? std::isnan(r) : l == r; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

std::string name_of(ConvTile tile) {
    return fmt::format("tile {}x{}", conv_tile_shape(tile).rows, conv_tile_shape(tile).columns);
}

}  // namespace

TEST_CASE("convolutions give the definition's bytes with every tile, alignment and order of work") {
    CudaContext context({});
    const std::vector<Case> cases = {
        Case(shape_of({6, 7, 20}, 136, 3, 1, 1), 2),  // more channels than a tile, terms past a block and no multiple
        Case(shape_of({7, 5, 61}, 12, 3, 2, 1), 3),   // single loads, classes of a stride, blocks cut inside them
        Case(shape_of({9, 11, 3}, 24, 5, 2, 2, 1, 2), 2),
        Case(shape_of({5, 30, 24}, 16, 3, 1, 1, 2), 4),  // groups; several blocks of positions
    };
    for (const Case& c : cases) {
        const Sums expected = reference_sums(c);
        for (const ConvTile tile : kTiles) {
            for (const bool in_order : {false, true}) {
                const int shift = in_order ? 1 : 0;
                INFO(c.text() << ", " << name_of(tile) << (in_order ? ", in order, odd addresses" : ""));
                ConvTuning tuning;
                tuning.tile = tile;
                tuning.weights_in_order = in_order;
                const Sums got = device_sums(context, c, tuning, shift);
                REQUIRE(same_bytes(got.y, expected.y));
                REQUIRE(same_bytes(got.dx, expected.dx));
                REQUIRE(same_bytes(got.dw, expected.dw));
                REQUIRE(same_bytes(got.db, expected.db));
            }
        }
    }
}

TEST_CASE("blocks of a weight gradient may be worked out a few at a time") {
    CudaContext context({});
    for (const int groups : {1, 4, 16}) {
        const Case c(shape_of({40, 40, 16}, 16, 1, 1, 0, groups), 2);  // 13 blocks
        REQUIRE(plan_conv_weights(c.shape, c.rows, 1, 1 << 20).blocks == 12);
        const Sums expected = reference_sums(c);
        for (const int blocks : {1, 5, 12}) {
            INFO(groups << " groups, " << blocks << " blocks at once");
            ConvTuning tuning;
            tuning.weights_in_order = false;
            tuning.most_part_floats = blocks * c.shape.weights();
            const Sums got = device_sums(context, c, tuning, 0);
            REQUIRE(same_bytes(got.dw, expected.dw));
            REQUIRE(same_bytes(got.db, expected.db));
        }
    }
}

TEST_CASE("taps outside the image are no terms, also where a weight or a gradient is not finite") {
    CudaContext context({});
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const int groups : {1, 16}) {
        for (const bool in_order : {false, true}) {
            Case c(shape_of({6, 6, 16}, 16, 3, 1, 1, groups), 3);
            c.w[4] = kInfinity;
            c.w[c.w.size() / 2] = std::numeric_limits<float>::quiet_NaN();
            c.dy[1] = -kInfinity;
            c.dy[100] = std::numeric_limits<float>::quiet_NaN();
            c.x[50] = kInfinity;
            const Sums expected = reference_sums(c);
            ConvTuning tuning;
            tuning.weights_in_order = in_order;
            const Sums got = device_sums(context, c, tuning, 0);
            INFO(groups << " groups");
            CHECK(like(got.y, expected.y));
            CHECK(like(got.dx, expected.dx));
            CHECK(like(got.dw, expected.dw));
            CHECK(like(got.db, expected.db));
        }
    }
}

TEST_CASE("weights that are finite again are taken for finite") {
    CudaContext context({});
    Case c(shape_of({6, 6, 16}, 16, 3, 1, 1), 2);
    const Sums expected = reference_sums(c);
    const auto conv = make_cuda_conv(context, c.shape, true, false);
    conv->plan_rows(c.rows);
    Numbers broken = c.w;
    broken[7] = std::numeric_limits<float>::infinity();
    const OnGpu x(context, c.x), bias(context, c.bias), y(context, static_cast<int64_t>(c.dy.size()));
    for (const Numbers* w : {&broken, &c.w}) {
        const OnGpu weights(context, *w);
        conv->prepare(context.main(), weights.data());
        conv->forward(context.main(), c.rows, x.data(), bias.data(), y.data());
        CHECK(same_bytes(y.fetch(), expected.y) == (w == &c.w));
    }
}

TEST_CASE("sums of products too small for a float are +0") {
    CudaContext context({});
    Case c(shape_of({5, 6, 8}, 8, 3, 1, 1), 2);
    for (float& x : c.x) x = 1e-30F;
    for (float& w : c.w) w = -1e-30F;
    for (float& dy : c.dy) dy = 1e-30F;
    for (std::size_t i = 0; i < c.dy.size(); i += 2) c.dy[i] = -1e-30F;
    for (float& bias : c.bias) bias = -0.0F;
    const Sums expected = reference_sums(c);
    for (const ConvTile tile : kTiles) {
        ConvTuning tuning;
        tuning.tile = tile;
        const Sums got = device_sums(context, c, tuning, 0);
        INFO(name_of(tile));
        CHECK(same_bytes(got.y, Numbers(c.dy.size(), 0.0F)));
        CHECK(same_bytes(got.y, expected.y));
        CHECK(same_bytes(got.dx, expected.dx));
        CHECK(same_bytes(got.dw, expected.dw));
    }
}

TEST_CASE("a leaf of no samples is zero") {
    CudaContext context({});
    const Case c(shape_of({4, 4, 3}, 5, 3, 1, 1), 1);
    const auto conv = make_cuda_conv(context, c.shape, false, false);
    const OnGpu leaf(context, conv->leaf_elements());
    conv->backward_weights(context.main(), 0, nullptr, nullptr, leaf.data());
    CHECK(same_bytes(leaf.fetch(), Numbers(static_cast<std::size_t>(conv->leaf_elements()), 0.0F)));
}

TEST_CASE("tiles are as large as the device stays busy with") {
    CHECK(choose_conv_tile(1 << 20, 512, 1, 132) == ConvTile::k128x128);
    CHECK(choose_conv_tile(1 << 20, 64, 1, 132) == ConvTile::k128x64);
    CHECK(choose_conv_tile(1 << 20, 16, 1, 132) == ConvTile::k128x16);
    CHECK(choose_conv_tile(40, 30, 1000, 132) == ConvTile::k32x32);
}

TEST_CASE("a convolution larger than the counters of the kernels is refused with its numbers") {
    CudaContext context({});
    const ConvShape shape = shape_of({1024, 1024, 1}, 1, 1, 1, 0);
    const auto conv = make_cuda_conv(context, shape, false, false);
    CHECK_THROWS_WITH(conv->plan_rows(4096), Catch::Contains("4096 samples of 1024 x 1024 x 1"));
    CHECK_THROWS_WITH(conv->forward(context.main(), 7, nullptr, nullptr, nullptr), Catch::Contains("plan_rows"));
}
