// The kernels around the vendor's products: number formats, borders, filters, bias and sums over rows.
#include <bit>
#include <limits>

#include "backend/cpu/reference_gemm.hpp"
#include "cuda/kernels/bias.h"
#include "cuda/kernels/cast.h"
#include "cuda/kernels/channel_sums.h"
#include "test/cuda/vendor_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// x rounded to `digits` binary digits of precision, to nearest even, by the host's own fp64.
float rounded(float x, int digits, int least_exponent, double largest) {
    if (!std::isfinite(x) || x == 0) return x;
    int exponent = 0;
    std::frexp(x, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent - digits, least_exponent));
    const double y = std::nearbyint(double{x} / unit) * unit;
    return std::abs(y) > largest ? std::copysign(std::numeric_limits<float>::infinity(), x) : static_cast<float>(y);
}

float rounded(NumberFormat format, float x) {
    switch (format) {
        case NumberFormat::kFp32:
            return x;
        case NumberFormat::kBf16:
            return rounded(x, 8, -133, std::ldexp(255.0, 120));
        case NumberFormat::kFp16:
            break;
    }
    return rounded(x, 11, -24, 65504.0);
}

Numbers hard_numbers() {
    Numbers x = random_numbers(1000, 7);
    for (std::size_t i = 0; i < 300; ++i) x[i] *= std::ldexp(1.0F, static_cast<int>(i % 60) - 30);
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float v : {0.0F, -0.0F, infinity, -infinity, 65504.0F, 65519.9F, 65520.0F, -1e30F, 3.4e38F, 1e-45F,
                          5.96e-8F, 2.98e-8F, 1.0F + 1.0F / 256, 1.0F + 3.0F / 256, 1.0F + 1.0F / 2048})
        x.push_back(v);
    return x;
}

constexpr NumberFormat kFormats[] = {NumberFormat::kFp32, NumberFormat::kBf16, NumberFormat::kFp16};

}  // namespace

TEST_CASE("numbers are narrowed to the nearest, ties to even, and widened exactly") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    const Numbers host = hard_numbers();
    const auto n = static_cast<int64_t>(host.size());
    for (const NumberFormat format : kFormats) {
        for (const int shift : {0, 1}) {  // four at a time, and one at a time
            const OnGpu from(context, host, shift), narrow_one(context, n), back(context, n);
            narrow(format, n, from.data(), narrow_one.data(), context.main().get());
            widen(format, n, narrow_one.data(), back.data(), context.main().get());
            const Numbers got = back.fetch();
            for (std::size_t i = 0; i < host.size(); ++i) {
                INFO(host[i] << " in format " << static_cast<int>(format));
                REQUIRE(std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(rounded(format, host[i])));
            }
        }
    }
}

TEST_CASE("a border is zeros around the image, and comes off again") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    const BorderShape shape{3, 4, 2, 1, 2, 0, 3};
    const int rows = 2;
    const Numbers x = random_numbers(rows * shape.inner_elements(), 1);
    for (const NumberFormat format : kFormats) {
        const OnGpu from(context, x), bordered(context, rows * shape.outer_elements()),
            wide(context, rows * shape.outer_elements()), back(context, rows * shape.inner_elements());
        add_border(format, rows, shape, from.data(), bordered.data(), context.main().get());
        widen(format, rows * shape.outer_elements(), bordered.data(), wide.data(), context.main().get());
        remove_border(format, rows, shape, bordered.data(), back.data(), context.main().get());
        const Numbers outer = wide.fetch(), inner = back.fetch();
        for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(inner[i] == rounded(format, x[i]));
        std::size_t at = 0;
        for (int n = 0; n < rows; ++n) {
            for (int h = -1; h < 5; ++h) {
                for (int w = 0; w < 7; ++w) {
                    for (int c = 0; c < 2; ++c, ++at) {
                        const bool inside = h >= 0 && h < 3 && w < 4;
                        const float expected =
                            inside ? rounded(format, x[static_cast<std::size_t>(((n * 3 + h) * 4 + w) * 2 + c)]) : 0.0F;
                        REQUIRE(outer[at] == expected);
                    }
                }
            }
        }
    }
}

TEST_CASE("filters are packed with channels fastest and unpacked again") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    constexpr int kOut = 3, kChannels = 5, kTaps = 6;
    const Numbers w = random_numbers(kOut * kChannels * kTaps, 1);
    const OnGpu from(context, w), packed(context, kOut * kChannels * kTaps), back(context, kOut * kChannels * kTaps);
    pack_filters(NumberFormat::kFp32, kOut, kChannels, kTaps, from.data(), packed.data(), context.main().get());
    unpack_filters(kOut, kChannels, kTaps, packed.data(), back.data(), context.main().get());
    const Numbers got = packed.fetch();
    for (std::size_t o = 0; o < kOut; ++o) {
        for (std::size_t c = 0; c < kChannels; ++c) {
            for (std::size_t t = 0; t < kTaps; ++t) {
                REQUIRE(got[(o * kTaps + t) * kChannels + c] == w[(o * kChannels + c) * kTaps + t]);
            }
        }
    }
    REQUIRE(same_bytes(back.fetch(), w));
}

TEST_CASE("a product ends in bias and relu") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    for (const int channels : {1, 10, 33, 64}) {
        const int64_t rows = 19;
        const Numbers x = random_numbers(rows * channels, 1), bias = random_numbers(channels, 2);
        const OnGpu b(context, bias);
        for (const NumberFormat format : kFormats) {
            for (const bool relu : {false, true}) {
                for (const bool has_bias : {false, true}) {
                    const OnGpu from(context, x), product(context, rows * channels), y(context, rows * channels);
                    narrow(format, rows * channels, from.data(), product.data(), context.main().get());
                    float* const to = format == NumberFormat::kFp32 && relu ? product.data() : y.data();  // in place
                    finish_product(format, rows, channels, product.data(), has_bias ? b.data() : nullptr, relu, to,
                                   context.main().get());
                    const Numbers got = to == y.data() ? y.fetch() : product.fetch();
                    for (std::size_t i = 0; i < x.size(); ++i) {
                        float expected = rounded(format, x[i]);
                        if (has_bias) expected = expected + bias[i % static_cast<std::size_t>(channels)];
                        if (relu) expected = relu_of(expected);
                        REQUIRE(got[i] == expected);
                    }
                }
            }
        }
    }
}

TEST_CASE("sums over rows are the CPU's, bit for bit") {
    CudaContext context(vendor_options(CudaPrecision::kFp32));
    for (const int channels : {1, 10, 32, 70}) {
        for (const int64_t rows : {1, 3, 255, 256, 257, 1500, 256 * 33 + 7}) {
            const Numbers x = random_numbers(rows * channels, 1);
            Numbers expected(static_cast<std::size_t>(channels));
            reference_channel_sums(rows, channels, x.data(), expected.data());
            const OnGpu from(context, x), partials(context, channel_partials(rows, channels)), sums(context, channels);
            channel_sums(rows, channels, from.data(), partials.data(), sums.data(), context.main().get());
            INFO(rows << " rows of " << channels);
            REQUIRE(same_bytes(sums.fetch(), expected));
        }
    }
}
