// What the CPU's kernel tables can be asked directly, and the operations of a backend cannot.
#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "backend/cpu/kernels.hpp"
#include "core/fixed_math.hpp"
#include "core/philox.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Every `stride`-th float from the bits `first` on, up to `last`.
std::vector<float> floats_between(uint32_t first, uint32_t last, uint32_t stride) {
    std::vector<float> x;
    for (uint64_t bits = first; bits <= last; bits += stride)
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    return x;
}

}  // namespace

TEST_CASE("the exponential of every target is exp_fixed, over the whole of the negative floats") {
    // -0 … -87.34 densely, where results are normal; beyond, down to the largest finite float and infinity, coarsely.
    std::vector<float> x = floats_between(0x80000000, 0xc2aeac60, 997);
    for (const float more : floats_between(0xc2aeac00, 0xc2aeacff, 1)) x.push_back(more);
    for (const float more : floats_between(0xc2aeac50, 0xff7fffff, 40009)) x.push_back(more);
    x.push_back(-std::numeric_limits<float>::max());
    x.push_back(-std::numeric_limits<float>::infinity());
    const auto n = static_cast<int64_t>(x.size());
    Floats expected(n);
    for (int64_t i = 0; i < n; ++i) expected[i] = exp_fixed(x[static_cast<std::size_t>(i)]);
    for (const Isa isa : available_isas()) {
        INFO(isa_name(isa));
        Floats y(n);
        softmax_kernels(isa).exponentials(n, x.data(), y.data());
        CHECK(same_bytes(y, expected));
    }
}

TEST_CASE(
    "exponential and logarithm of every target are exp_fixed and log_fixed, over the whole of the positive floats") {
    std::vector<float> x = floats_between(0, 0x7f800000, 9973);
    for (const float more : floats_between(0x007fff00, 0x00800100, 1)) x.push_back(more);  // the smallest normals
    for (const float more : floats_between(0x42afff00, 0x42b00100, 1)) x.push_back(more);  // about 88
    for (const float more : floats_between(0x3f350400, 0x3f350600, 1)) x.push_back(more);  // about sqrt(1/2)
    for (const float more : floats_between(0x3f7fff00, 0x3f800100, 1)) x.push_back(more);  // about 1
    x.push_back(std::numeric_limits<float>::infinity());
    const auto n = static_cast<int64_t>(x.size());
    Floats exponentials(n), logarithms(n);
    for (int64_t i = 0; i < n; ++i) {
        exponentials[i] = exp_fixed(x[static_cast<std::size_t>(i)]);
        logarithms[i] = log_fixed(x[static_cast<std::size_t>(i)]);
    }
    for (const Isa isa : available_isas()) {
        INFO(isa_name(isa));
        Floats y(n);
        softmax_kernels(isa).exponentials(n, x.data(), y.data());
        CHECK(same_bytes(y, exponentials));
        softmax_kernels(isa).logarithms(n, x.data(), y.data());
        CHECK(same_bytes(y, logarithms));
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
