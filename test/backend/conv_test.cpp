// Convolutions: every backend, instruction set and number of threads or streams gives the bytes of the plain loops that
// define the sums.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "backend/cpu/reference_gemm.hpp"
#include "conv_cases.hpp"
#include "core/error.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

ConvResult reference_result(const ConvCase& c, int chain = kChainTerms, int positions = kChainPositions) {
    ConvResult r(c);
    reference_conv_forward(c.shape, c.rows, c.x.data(), c.w.data(), c.shape.bias ? c.b.data() : nullptr, c.relu,
                           r.y.data(), chain);
    reference_conv_backward_data(c.shape, c.rows, c.dy.data(), c.w.data(), r.dx.data(), chain);
    reference_conv_weight_gradient(c.shape, c.rows, {0, c.shape.out_channels}, c.x.data(), c.dy.data(), r.dw.data(),
                                   positions);
    if (c.shape.bias) {
        reference_channel_sums(int64_t{c.rows} * c.shape.out_h() * c.shape.out_w(), c.shape.out_channels, c.dy.data(),
                               r.db.data());
    }
    return r;
}

// The arrays of a case in the memory of a backend.
struct OnBackend {
    OnDevice<float> x, w, b, dy;
    const float* bias;
    OnBackend(const ConvCase& c, const NamedBackend& on)
        : x(on, c.x), w(on, c.w), b(on, c.b), dy(on, c.dy), bias(c.shape.bias ? b.data() : nullptr) {}
};

// A leaf that a rounding error of its length would overrun.
OnDevice<float> leaf_of(const NamedBackend& on, const Conv& conv) {
    return {on, conv.leaf_elements(), -3.0F};
}

ConvResult backend_result(const ConvCase& c, const NamedBackend& on) {
    const ConvResult empty(c);
    const OnBackend arrays(c, on);
    const OnDevice<float> y(on, empty.y), dx(on, empty.dx), dw(on, empty.dw), db(on, empty.db);
    const auto conv = on->plan_conv(c.shape, c.relu, true);
    conv->plan_rows(c.rows);
    Stream& stream = on.main();
    conv->prepare(stream, arrays.w.data());
    conv->forward(stream, c.rows, arrays.x.data(), arrays.bias, y.data());
    conv->backward_data(stream, c.rows, arrays.dy.data(), dx.data());
    const OnDevice<float> leaf = leaf_of(on, *conv);
    conv->backward_weights(stream, c.rows, arrays.x.data(), arrays.dy.data(), leaf.data());
    REQUIRE(leaf.fetch().intact());
    conv->store_gradient(stream, leaf.data(), dw.data(), c.shape.bias ? db.data() : nullptr);
    return {y.fetch(), dx.fetch(), dw.fetch(), db.fetch()};
}

void check_case(ConvCase& c, Random& random, const std::vector<NamedBackend>& backends) {
    c.fill(random);
    INFO("seed " << random.seed() << ": " << c.text());
    const ConvResult expected = reference_result(c);
    for (const NamedBackend& named : backends) {
        INFO(named.name);
        const ConvResult r = backend_result(c, named);
        REQUIRE(same_bytes(r.y, expected.y));
        REQUIRE(same_bytes(r.dx, expected.dx));
        REQUIRE(same_bytes(r.dw, expected.dw));
        REQUIRE(same_bytes(r.db, expected.db));
    }
}

// On the emulation of a device a term takes far longer.
bool on_host(const std::vector<NamedBackend>& backends) {
    return backends.front()->host_sees_device();
}

}  // namespace

TEST_CASE("convolutions give the reference's bytes on every backend, instruction set and thread count") {
    Random random;
    const auto backends = every_backend();
    const int cases = on_host(backends) ? 250 : 150;
    const int64_t terms = on_host(backends) ? 300'000 : 150'000;
    for (int i = 0; i < cases; ++i) {
        ConvCase c = random_conv(random, terms);
        check_case(c, random, backends);
    }
}

TEST_CASE("convolutions of the shapes that networks have give the reference's bytes") {
    Random random;
    const auto backends = every_backend(2);
    struct Shape {
        int rows, size, in, out, kernel, stride, pad, groups;
    };
    const std::vector<Shape> shapes = {
        {3, 28, 1, 32, 5, 1, 2, 1},     {3, 14, 32, 64, 5, 1, 2, 1},  {2, 32, 3, 16, 3, 1, 1, 1},
        {2, 16, 16, 32, 3, 2, 1, 1},    {3, 8, 64, 64, 3, 1, 1, 1},   {3, 14, 64, 64, 1, 1, 0, 1},
        {2, 14, 64, 128, 1, 2, 0, 1},   {1, 7, 128, 136, 3, 1, 1, 1}, {2, 32, 3, 24, 7, 2, 3, 1},
        {2, 12, 64, 64, 3, 1, 1, 64},   {2, 13, 48, 48, 3, 2, 1, 48}, {2, 9, 64, 64, 3, 1, 1, 4},
        {1, 23, 40, 40, 23, 1, 11, 40},  // depthwise of two blocks
        {2, 14, 144, 300, 1, 1, 0, 1},   // rows of dy so long that they are copied, more columns than at a time
        {2, 11, 130, 200, 1, 2, 0, 1},   // and x strided
        {1, 8, 300, 290, 1, 1, 0, 2},    // in groups
        {1, 10, 16, 200, 3, 1, 0, 1},    // tiles of rows of several taps
        {1, 9, 20, 220, 3, 2, 1, 1},     // runs that end at the border of the image
    };
    for (const Shape& shape : shapes) {
        ConvCase c;
        c.rows = shape.rows;
        c.relu = true;
        c.shape.in = {shape.size, shape.size, shape.in};
        c.shape.out_channels = shape.out;
        c.shape.kernel_h = c.shape.kernel_w = shape.kernel;
        c.shape.stride_h = c.shape.stride_w = shape.stride;
        c.shape.pad_top = c.shape.pad_bottom = c.shape.pad_left = c.shape.pad_right = shape.pad;
        c.shape.groups = shape.groups;
        check_case(c, random, backends);
    }
}

TEST_CASE("output positions without any tap are the bias, and input positions without any are zero") {
    Random random;
    const auto backends = every_backend(2);
    for (const int channels : {2, 9, 20}) {
        ConvCase c;
        c.rows = 2;
        c.shape.in = {3, 4, channels};
        c.shape.out_channels = 5;
        c.shape.kernel_h = 1;
        c.shape.kernel_w = 2;
        c.shape.pad_top = 3;
        c.shape.pad_right = 4;
        c.shape.stride_h = 2;
        c.shape.stride_w = 3;
        check_case(c, random, backends);
    }
}

TEST_CASE("rows may be split over calls of convolutions, and over streams at once") {
    Random random;
    for (const NamedBackend& on : every_backend(3)) {
        for (const int channels : {3, 12}) {
            ConvCase c;
            c.rows = 11;
            c.shape = lenet_second();
            if (!on->host_sees_device()) c.shape.in = {6, 5, channels};
            c.shape.in.channels = channels;
            c.shape.out_channels = 20;
            c.fill(random);
            const ConvResult expected = reference_result(c);
            const auto conv = on->plan_conv(c.shape, false, true);
            const std::vector<int> pieces = {1, 3, 2, 5};
            for (const int rows : pieces) conv->plan_rows(rows);
            const OnBackend arrays(c, on);
            const ConvResult empty(c);
            const OnDevice<float> y(on, empty.y), dx(on, empty.dx);
            std::vector<OnDevice<float>> leaves, gradients;
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                leaves.push_back(leaf_of(on, *conv));
                gradients.emplace_back(on, empty.dw);
            }
            conv->prepare(on.main(), arrays.w.data());
            const auto ranges = on->split_items(static_cast<int>(pieces.size()));
            on->for_each_range(ranges, [&](Stream& stream, int range) {
                int64_t row = 0;
                for (int i = 0; i < static_cast<int>(pieces.size()); ++i) {
                    const ShardRange mine = ranges[static_cast<std::size_t>(range)];
                    const int rows = pieces[static_cast<std::size_t>(i)];
                    if (i >= mine.begin && i < mine.end) {
                        const int64_t x_at = row * c.shape.in.elements(), y_at = row * c.shape.out().elements();
                        const float* const x = arrays.x.data() + x_at;
                        const float* const dy = arrays.dy.data() + y_at;
                        conv->forward(stream, rows, x, arrays.bias, y.data() + y_at);
                        conv->backward_data(stream, rows, dy, dx.data() + x_at);
                        conv->backward_weights(stream, rows, x, dy, leaves[static_cast<std::size_t>(i)].data());
                    }
                    row += rows;
                }
            });
            INFO(on.name << ", " << channels << " channels");
            REQUIRE(same_bytes(y.fetch(), expected.y));
            REQUIRE(same_bytes(dx.fetch(), expected.dx));
            int64_t row = 0;
            for (std::size_t i = 0; i < pieces.size(); ++i) {
                Floats dw(c.shape.weights());
                reference_conv_weight_gradient(c.shape, pieces[i], {0, c.shape.out_channels},
                                               c.x.data() + row * c.shape.in.elements(),
                                               c.dy.data() + row * c.shape.out().elements(), dw.data());
                conv->store_gradient(on.main(), leaves[i].data(), gradients[i].data(), nullptr);
                REQUIRE(same_bytes(gradients[i].fetch(), dw));
                row += pieces[i];
            }
        }
    }
}

TEST_CASE("leaves of shards are added in the device's order and stored in W's") {
    Random random;
    for (const NamedBackend& on : every_backend(2)) {
        for (const int groups : {1, 2, 12}) {
            ConvCase left, right;
            left.shape = lenet_second();
            if (!on->host_sees_device()) left.shape.in = {7, 9, 12};
            left.shape.in.channels = left.shape.out_channels = 12;
            left.shape.groups = groups;
            right.shape = left.shape;
            left.rows = 3;
            right.rows = 2;
            left.fill(random);
            right.fill(random);
            const ConvResult a = reference_result(left), b = reference_result(right);
            const auto conv = on->plan_conv(left.shape, false, false);
            conv->plan_rows(3);
            conv->plan_rows(2);
            const OnBackend of_left(left, on), of_right(right, on);
            const OnDevice<float> leaf = leaf_of(on, *conv), other = leaf_of(on, *conv);
            conv->backward_weights(on.main(), 3, of_left.x.data(), of_left.dy.data(), leaf.data());
            conv->backward_weights(on.main(), 2, of_right.x.data(), of_right.dy.data(), other.data());
            on->add(on.main(), conv->leaf_elements(), leaf.data(), other.data(), leaf.data());
            const ConvResult empty(left);
            const OnDevice<float> to_dw(on, empty.dw), to_db(on, empty.db);
            conv->store_gradient(on.main(), leaf.data(), to_dw.data(), to_db.data());
            Floats dw = a.dw, db = a.db;
            for (int64_t i = 0; i < dw.size(); ++i) dw[i] = a.dw[i] + b.dw[i];
            for (int64_t i = 0; i < db.size(); ++i) db[i] = a.db[i] + b.db[i];
            INFO(on.name << ", " << groups << " groups");
            REQUIRE(same_bytes(to_dw.fetch(), dw));
            REQUIRE(same_bytes(to_db.fetch(), db));
        }
    }
}

TEST_CASE("other block lengths give other bits in convolutions, so that these tests can fail") {
    Random random;
    ConvCase c;
    c.shape = lenet_second();
    c.shape.out_channels = 40;  // a data gradient of 1,000 terms
    c.rows = 4;
    c.fill(random);
    const ConvResult expected = reference_result(c), other = reference_result(c, 256, 128);
    CHECK_FALSE(same_bytes(other.y, expected.y));
    CHECK_FALSE(same_bytes(other.dx, expected.dx));
    CHECK_FALSE(same_bytes(other.dw, expected.dw));
}

TEST_CASE("NaN and infinity stay what they are through convolutions and relu") {
    Random random;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const auto like = [](const Floats& a, const Floats& b) {
        for (int64_t i = 0; i < a.size(); ++i) {
            if (!(std::isnan(a[i]) ? std::isnan(b[i]) : a[i] == b[i])) return false;
        }
        return a.size() == b.size();
    };
    for (const int groups : {1, 2, 16}) {
        ConvCase c;
        c.shape = lenet_second();
        c.shape.in.channels = c.shape.out_channels = 16;
        c.shape.groups = groups;
        c.rows = 2;
        c.relu = true;
        c.fill(random);
        c.x[100] = kNaN;
        c.x[1000] = kInfinity;
        c.b[3] = kNaN;
        c.dy[777] = kNaN;
        c.dy[31] = -kInfinity;
        const ConvResult expected = reference_result(c);
        REQUIRE(std::isnan(expected.y[3]));
        for (const NamedBackend& named : every_backend(1)) {
            INFO(named.name << ", " << groups << " groups");
            const ConvResult r = backend_result(c, named);
            CHECK(like(expected.y, r.y));
            CHECK(like(expected.dx, r.dx));
            CHECK(like(expected.dw, r.dw));
            CHECK(like(expected.db, r.db));
        }
    }
}

TEST_CASE("a convolution that is none is refused with its numbers") {
    const auto backends = every_backend(1);
    const auto message = [&](const ConvShape& shape) -> std::string {
        try {
            backends.front()->plan_conv(shape, false, false);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::kUsage);
            return error.what();
        }
        return "accepted";
    };
    ConvShape shape = lenet_second();
    shape.groups = 3;
    CHECK(message(shape) == "convolution: 3 groups do not divide 32 input and 64 output channels");
    shape = lenet_second();
    shape.dilation_h = 5;
    CHECK(message(shape) ==
          "convolution: a kernel that spans 21 x 5 does not fit an image of 18 x 18, padding included");
    shape = lenet_second();
    shape.stride_w = 0;
    CHECK(message(shape).find("must be at least 1") != std::string::npos);
}

TEST_CASE("convolutions give the reference's bytes over many random shapes", "[.long]") {
    Random random;
    const auto backends = every_backend();
    for (int i = 0; i < 3000; ++i) {
        ConvCase c = random_conv(random, 1'000'000);
        check_case(c, random, backends);
    }
}
