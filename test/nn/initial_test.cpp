// Truncated normals: what is drawn lies within two deviations, is the plain normal where that does, and depends on
// nothing but seed, name and element.
#include <catch2/catch.hpp>
#include <cmath>

#include "nn/parameters.hpp"

namespace lockstep::test {
namespace {

std::vector<float> drawn(Initial::Kind kind, int64_t count, uint64_t seed = 1, int threads = 1,
                         const std::string& name = "w") {
    ParameterTable table;
    table.add(name, {count}, {kind, 0.5});
    std::vector<float> values(static_cast<std::size_t>(count));
    ThreadPool pool(threads);
    table.initialise(seed, values, pool);
    return values;
}

TEST_CASE("truncated normals lie within two deviations, and have the deviation of a normal cut there") {
    const std::vector<float> cut = drawn(Initial::Kind::kTruncated, 100'003);
    const std::vector<float> whole = drawn(Initial::Kind::kNormal, 100'003);
    double sum = 0, squares = 0;
    int again = 0;
    for (std::size_t i = 0; i < cut.size(); ++i) {
        REQUIRE(std::abs(cut[i]) <= 1.0F);
        if (std::abs(whole[i]) > 1.0F) {
            ++again;
            CHECK(cut[i] != whole[i]);
        } else if (cut[i] != whole[i]) {
            FAIL("element " << i << " was drawn again without need");
        }
        sum += cut[i];
        squares += double{cut[i]} * cut[i];
    }
    const double n = static_cast<double>(cut.size());
    CHECK(std::abs(sum / n) < 0.01);
    CHECK(std::abs(std::sqrt(squares / n) - 0.5 * 0.8796) < 0.01);
    CHECK(std::abs(again / n - 0.0455) < 0.005);
}

TEST_CASE("truncated normals are the same whoever draws them, and others for another seed or name") {
    const std::vector<float> values = drawn(Initial::Kind::kTruncated, 4'099);
    CHECK(drawn(Initial::Kind::kTruncated, 4'099, 1, 3) == values);
    CHECK(drawn(Initial::Kind::kTruncated, 4'099, 2) != values);
    CHECK(drawn(Initial::Kind::kTruncated, 4'099, 1, 1, "v") != values);
    const std::vector<float> more = drawn(Initial::Kind::kTruncated, 5'000);
    CHECK(std::equal(values.begin(), values.end(), more.begin()));
}

}  // namespace
}  // namespace lockstep::test
