// What tables and branches need: columns as numbers or one-hot, parts of rows beside each other, filled arrays.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "core/error.hpp"
#include "kernel_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("columns are passed on as numbers, or become one element for each id") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<ExpandColumn> columns = {{2, 0}, {0, 3}, {1, 2}, {0, 1}};
    const Floats x =
        values({0.0F, 1.0F, 0.5F, 2.0F, 0.0F, -7.0F, -1.0F, 2.0F, 1e-42F, 3.0F, nan, -0.0F, 1.5F, 1e9F, 2.0F});
    const Floats expected = values({0.5F,   1.0F, 0.0F, 0.0F, 0.0F, 1.0F, 1.0F,  //
                                    -7.0F,  0.0F, 0.0F, 1.0F, 1.0F, 0.0F, 0.0F,  //
                                    1e-42F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F,  //
                                    -0.0F,  0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F,  //
                                    2.0F,   0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F});
    for (const NamedBackend& on : every_backend(1)) {
        INFO(on.name);
        const auto expand = on->plan_expand(3, columns);
        const OnDevice from(on, x);
        OnDevice<float> y(on, 35, 9.0F);
        expand->forward(on.main(), 5, from.data(), y.data());
        CHECK(same_bytes(y.fetch(), expected));
        CHECK_THROWS_AS(on->plan_expand(3, std::vector<ExpandColumn>{{3, 0}}), Error);
        CHECK_THROWS_AS(on->plan_expand(3, std::vector<ExpandColumn>{{0, -1}}), Error);
    }
}

TEST_CASE("expanded rows are the same on every backend and thread count") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (const int rows : {1, 17, 700}) {
        std::vector<ExpandColumn> columns;
        int elements = 0;
        for (int i = 0; i < 12; ++i) {
            columns.push_back({random.in(0, 8), random.in(0, 2) == 0 ? 0 : random.in(1, 40)});
            elements += std::max(columns.back().width, 1);
        }
        Floats x(int64_t{rows} * 9), expected(int64_t{rows} * elements);
        for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(random.in(-1, 40));
        float* to = expected.data();
        for (int r = 0; r < rows; ++r) {
            for (const ExpandColumn& each : columns) {
                const float value = x[int64_t{r} * 9 + each.column];
                if (each.width == 0) *to++ = value;
                for (int id = 0; id < each.width; ++id) *to++ = value == static_cast<float>(id) ? 1.0F : 0.0F;
            }
        }
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << rows << " rows");
            const auto expand = on->plan_expand(9, columns);
            const OnDevice from(on, x);
            OnDevice<float> y(on, expected.size(), 9.0F);
            expand->forward(on.main(), rows, from.data(), y.data());
            REQUIRE(same_bytes(y.fetch(), expected));
        }
    }
}

TEST_CASE("parts of rows are copied beside each other, and nothing else is touched") {
    Random random;
    INFO("seed " << random.seed());
    const auto backends = every_backend();
    for (int trial = 0; trial < 12; ++trial) {
        const int64_t rows = trial == 0 ? 1500 : random.in(1, 60);
        const int width = random.in(1, 70);
        const RowPart from{width + random.in(0, 9), 0}, to{width + 30, random.in(0, 30)};
        const RowPart shifted{from.stride, from.stride - width};
        const Floats x(random, rows * from.stride), before(random, rows * to.stride);
        Floats expected = before;
        for (int64_t r = 0; r < rows; ++r) {
            for (int j = 0; j < width; ++j) {
                expected[r * to.stride + to.first + j] = x[r * shifted.stride + shifted.first + j];
            }
        }
        for (const NamedBackend& on : backends) {
            INFO(on.name << ", " << rows << " rows, " << width << " of " << from.stride << " to " << to.stride);
            const OnDevice source(on, x);
            OnDevice y(on, before);
            on->copy_part(on.main(), rows, width, source.data(), shifted, y.data(), to);
            REQUIRE(same_bytes(y.fetch(), expected));
        }
    }
}

TEST_CASE("an array is filled to its end") {
    Random random;
    for (const NamedBackend& on : every_backend()) {
        for (const int64_t n : sizes_with_tails(random)) {
            INFO(on.name << ", " << n);
            OnDevice<float> x(on, n);
            on->fill(on.main(), n, -0.5F, x.data());
            REQUIRE(same_bytes(x.fetch(), Floats(n, -0.5F)));
        }
    }
}
