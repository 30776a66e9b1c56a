// Convolutions by cuDNN: near the CPU's sums in every precision, and the same bits wherever a shard is computed.
#include <fmt/format.h>

#include "backend/cpu/reference_gemm.hpp"
#include "core/error.hpp"
#include "cuda/backend/vendor.hpp"
#include "test/cuda/vendor_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;

namespace {

struct ConvCase {
    ConvShape shape;
    int rows = 3;
    std::string text() const {
        const ConvShape& s = shape;
        return fmt::format(
            "{} rows of {}x{}x{} -> {}, kernel {}x{}, stride {}x{}, dilation {}x{}, padding {} {} {} {}, "
            "{} groups",
            rows, s.in.height, s.in.width, s.in.channels, s.out_channels, s.kernel_h, s.kernel_w, s.stride_h,
            s.stride_w, s.dilation_h, s.dilation_w, s.pad_top, s.pad_bottom, s.pad_left, s.pad_right, s.groups);
    }
    Numbers x() const { return random_numbers(rows * shape.in.elements(), 1); }
    Numbers dy() const { return random_numbers(rows * shape.out().elements(), 2); }
    Numbers w() const { return random_numbers(shape.weights(), 3, 0.1F); }
    Numbers bias() const {
        return shape.bias ? random_numbers(shape.out_channels, 4)
                          : Numbers(static_cast<std::size_t>(shape.out_channels));
    }
};

ConvCase square(int rows, int size, int in, int out, int kernel, int stride, int pad, int groups = 1) {
    ConvCase c;
    c.rows = rows;
    c.shape.in = {size, size, in};
    c.shape.out_channels = out;
    c.shape.kernel_h = c.shape.kernel_w = kernel;
    c.shape.stride_h = c.shape.stride_w = stride;
    c.shape.pad_top = c.shape.pad_bottom = c.shape.pad_left = c.shape.pad_right = pad;
    c.shape.groups = groups;
    return c;
}

std::vector<ConvCase> cases() {
    std::vector<ConvCase> all = {square(3, 12, 1, 6, 5, 1, 2),      square(2, 9, 6, 10, 5, 1, 0),
                                 square(2, 8, 16, 16, 3, 1, 1),     square(2, 9, 8, 12, 3, 2, 1),
                                 square(3, 7, 12, 8, 1, 1, 0),      square(1, 11, 3, 8, 7, 2, 3),
                                 square(2, 8, 12, 12, 3, 1, 1, 12), square(2, 6, 8, 12, 3, 1, 1, 4)};
    ConvCase uneven = square(2, 9, 5, 7, 3, 2, 0);  // "same" of stride 2 at an even size
    uneven.shape.in = {8, 11, 5};
    uneven.shape.pad_bottom = 1;
    uneven.shape.pad_left = 2;
    uneven.shape.dilation_w = 2;
    all.push_back(uneven);
    ConvCase unreached = square(2, 8, 4, 6, 2, 2, 1);  // the last row of padding is under no kernel
    unreached.shape.pad_bottom = 0;
    all.push_back(unreached);
    return all;
}

struct Result {
    Numbers y, dx, dw, db;
};

bool same_bytes(const Result& a, const Result& b) {
    return test::same_bytes(a.y, b.y) && test::same_bytes(a.dx, b.dx) && test::same_bytes(a.dw, b.dw) &&
           test::same_bytes(a.db, b.db);
}

Result compute(const ConvCase& c, const CudaOptions& options, int stream = -1, int shift = 0) {
    CudaContext context(options);
    const auto conv = make_vendor_conv(context, c.shape, true, true);
    conv->plan_rows(c.rows);
    const OnGpu x(context, c.x(), shift), dy(context, c.dy(), shift), w(context, c.w()), bias(context, c.bias());
    const OnGpu y(context, c.rows * c.shape.out().elements(), shift);
    const OnGpu dx(context, c.rows * c.shape.in.elements(), shift), leaf(context, conv->leaf_elements(), shift);
    const OnGpu dw(context, c.shape.weights()), db(context, c.shape.out_channels);
    Stream& on = stream < 0 ? context.main() : context.shard(stream);
    conv->prepare(on, w.data());
    conv->forward(on, c.rows, x.data(), c.shape.bias ? bias.data() : nullptr, y.data());
    conv->backward_data(on, c.rows, dy.data(), dx.data());
    conv->backward_weights(on, c.rows, x.data(), dy.data(), leaf.data());
    conv->store_gradient(on, leaf.data(), dw.data(), c.shape.bias ? db.data() : nullptr);
    return {y.fetch(), dx.fetch(), dw.fetch(), db.fetch()};
}

Result reference(const ConvCase& c) {
    Result r;
    r.y.resize(static_cast<std::size_t>(c.rows * c.shape.out().elements()));
    r.dx.resize(static_cast<std::size_t>(c.rows * c.shape.in.elements()));
    r.dw.resize(static_cast<std::size_t>(c.shape.weights()));
    r.db.resize(static_cast<std::size_t>(c.shape.out_channels));
    reference_conv_forward(c.shape, c.rows, c.x().data(), c.w().data(), c.bias().data(), true, r.y.data());
    reference_conv_backward_data(c.shape, c.rows, c.dy().data(), c.w().data(), r.dx.data());
    reference_conv_weight_gradient(c.shape, c.rows, {0, c.shape.out_channels}, c.x().data(), c.dy().data(),
                                   r.dw.data());
    reference_channel_sums(int64_t{c.rows} * c.shape.out_h() * c.shape.out_w(), c.shape.out_channels, c.dy().data(),
                           r.db.data());
    return r;
}

}  // namespace

TEST_CASE("convolutions of every precision are near the CPU's") {
    for (const ConvCase& c : cases()) {
        const Result expected = reference(c);
        for (const PrecisionCase& each : precisions()) {
            INFO(c.text() << ", precision " << static_cast<int>(each.precision));
            const Result got = compute(c, vendor_options(each.precision));
            CHECK(distance(got.y, expected.y) < each.bound);
            CHECK(distance(got.dx, expected.dx) < each.bound);
            CHECK(distance(got.dw, expected.dw) < each.bound);
            CHECK(test::same_bytes(got.db, expected.db));  // own kernel, the CPU's order
        }
    }
}

TEST_CASE("a convolution without a bias adds none, and its leaf holds weights only") {
    for (ConvCase c : cases()) {
        const Result with_bias = compute(c, vendor_options(CudaPrecision::kFp32));
        c.shape.bias = false;
        INFO(c.text());
        const Result expected = reference(c), got = compute(c, vendor_options(CudaPrecision::kFp32));
        CHECK(distance(got.y, expected.y) < 1e-5);
        CHECK(test::same_bytes(got.dw, with_bias.dw));
        CHECK(got.db == Numbers(got.db.size(), -3.0F));  // as it was made
        CHECK_FALSE(test::same_bytes(got.y, with_bias.y));
        CudaContext context(vendor_options(CudaPrecision::kFp32));
        CHECK(make_vendor_conv(context, c.shape, true, true)->leaf_elements() == vendor_padded(c.shape.weights()));
    }
}

TEST_CASE("a convolution of reduced precision has other bits than fp32") {
    const ConvCase c = square(2, 8, 16, 16, 3, 1, 1);
    const Result fp32 = compute(c, vendor_options(CudaPrecision::kFp32));
    for (const auto precision : {CudaPrecision::kTf32, CudaPrecision::kBf16, CudaPrecision::kFp16}) {
        const Result other = compute(c, vendor_options(precision));
        CHECK_FALSE(test::same_bytes(other.y, fp32.y));
        CHECK_FALSE(test::same_bytes(other.dx, fp32.dx));
        CHECK_FALSE(test::same_bytes(other.dw, fp32.dw));
    }
}

TEST_CASE("a convolution has the same bits on any stream and wherever its tensors lie") {
    for (const ConvCase& c : {square(3, 12, 1, 6, 5, 1, 2), square(2, 8, 16, 16, 3, 1, 1)}) {
        for (const auto precision : {CudaPrecision::kFp32, CudaPrecision::kBf16}) {
            const Result one = compute(c, vendor_options(precision));
            for (const int streams : {2, 4}) {
                for (int stream = -1; stream < streams; ++stream) {
                    INFO(c.text() << ", stream " << stream << " of " << streams);
                    REQUIRE(same_bytes(compute(c, vendor_options(precision, streams), stream), one));
                }
            }
            REQUIRE(same_bytes(compute(c, vendor_options(precision), -1, 1), one));
        }
    }
}

TEST_CASE("shards at work on several streams at once do not disturb one another") {
    const ConvCase c = square(4, 12, 6, 8, 3, 1, 1);
    CudaContext context(vendor_options(CudaPrecision::kFp32, 4));
    const auto conv = make_vendor_conv(context, c.shape, false, true);
    conv->plan_rows(c.rows);
    const OnGpu w(context, c.w()), bias(context, c.bias());
    conv->prepare(context.main(), w.data());
    CUDA_CHECK(cudaStreamSynchronize(context.main().get()));
    std::vector<OnGpu> x, y;
    for (int i = 0; i < 4; ++i) {
        x.emplace_back(context, random_numbers(c.rows * c.shape.in.elements(), 10 + static_cast<unsigned>(i)));
        y.emplace_back(context, c.rows * c.shape.out().elements());
    }
    for (std::size_t i = 0; i < 4; ++i) {
        conv->forward(context.shard(static_cast<int>(i)), c.rows, x[i].data(), bias.data(), y[i].data());
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < 4; ++i) {
        const Numbers together = y[i].fetch();
        conv->forward(context.main(), c.rows, x[i].data(), bias.data(), y[i].data());
        REQUIRE(test::same_bytes(y[i].fetch(), together));
    }
}

TEST_CASE("the algorithms chosen are named, one line for each number of rows") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    REQUIRE(vendor_algorithms(context).empty());
    const auto conv = make_vendor_conv(context, square(3, 12, 1, 6, 5, 1, 2).shape, true, false);
    conv->plan_rows(3);
    conv->plan_rows(3);
    conv->plan_rows(2);
    const auto lines = vendor_algorithms(context);
    REQUIRE(lines.size() == 2);
    REQUIRE_THAT(lines[0], Contains("12x12x1 -> 12x12x6, kernel 5x5") && Contains("3 rows, fp32: forward ") &&
                               Contains("data gradient none, weight gradient ALGO_1"));
}

TEST_CASE("a convolution without output is refused") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    REQUIRE_THROWS_WITH(make_vendor_conv(context, square(1, 3, 1, 1, 5, 1, 0).shape, false, false),
                        Contains("does not fit an image"));
}

#ifdef LOCKSTEP_CUDA_EMULATION
// A real library may or may not show it; the emulated one always does.
TEST_CASE("the rows of two shards in one convolution would be other bits") {
    const ConvCase both = square(4, 8, 16, 16, 3, 1, 1);
    ConvCase first = both;
    first.rows = 2;
    const Numbers together = compute(both, vendor_options(CudaPrecision::kFp32)).y;
    const Numbers alone = compute(first, vendor_options(CudaPrecision::kFp32)).y;
    const Numbers all = both.x(), some = first.x();
    REQUIRE(std::equal(some.begin(), some.end(), all.begin()));
    REQUIRE_FALSE(std::equal(alone.begin(), alone.end(), together.begin()));
}
#endif
