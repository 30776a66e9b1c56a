// The table of tensors: places, initial values, and the order of columns in memory and in files.
#include "nn/parameters.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/fixed_math.hpp"
#include "core/philox.hpp"

namespace lockstep {
namespace {

std::vector<float> initialised(const ParameterTable& table, uint64_t seed, int threads) {
    ThreadPool pool(threads);
    std::vector<float> flat(static_cast<std::size_t>(table.flat_elements()), 7.0F);
    table.initialise(seed, flat, pool);
    return flat;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr Initial kNormal{Initial::Kind::kNormal, 0.5};
constexpr Initial kZero{Initial::Kind::kConstant, 0.0};

}  // namespace

TEST_CASE("every tensor starts on a 64-byte border, in the order of the model") {
    ParameterTable table;
    CHECK(table.add("fc1.weight", {3, 5}, kNormal) == 0);
    CHECK(table.add("fc1.bias", {3}, kZero) == 1);
    CHECK(table.add("fc2.weight", {2, 3}, kNormal) == 2);
    CHECK(table[0].offset == 0);
    CHECK(table[1].offset == 16);
    CHECK(table[2].offset == 32);
    CHECK(table.flat_elements() == 38);
    CHECK(table.trainable() == 24);
    CHECK(table[0].is_weight());
    CHECK_FALSE(table[1].is_weight());
}

TEST_CASE("initial weights depend on seed, name and element, not on threads or neighbours") {
    ParameterTable table;
    table.add("fc1.weight", {37, 29}, kNormal);
    table.add("fc1.bias", {37}, kZero);
    const std::vector<float> one = initialised(table, 1, 1);
    CHECK(same_bytes(one, initialised(table, 1, 3)));
    CHECK_FALSE(same_bytes(one, initialised(table, 2, 1)));

    ParameterTable moved;
    moved.add("conv1.weight", {4, 1, 3, 3}, kNormal);
    moved.add("fc1.weight", {37, 29}, kNormal);
    const std::vector<float> other = initialised(moved, 1, 2);
    CHECK(std::memcmp(one.data(), other.data() + moved[1].offset, 37 * 29 * sizeof(float)) == 0);
    CHECK(std::memcmp(other.data(), other.data() + moved[1].offset, 36 * sizeof(float)) != 0);
}

TEST_CASE("element 4k+i of a tensor is value i of two Box-Muller pairs of block k") {
    ParameterTable table;
    table.add("fc1.weight", {2, 4}, kNormal);
    const std::vector<float> flat = initialised(table, 9, 1);
    const RandomStream stream(9, Purpose::kInitialWeights, stream_id("fc1.weight"));
    for (std::size_t e = 0; e < 8; ++e) {
        const PhiloxCounter bits = stream.block(e / 4);
        const std::size_t pair = e % 4 / 2;
        const double u1 = (static_cast<double>(bits[2 * pair]) + 1) / 4294967296.0;
        const double u2 = static_cast<double>(bits[2 * pair + 1]) / 4294967296.0;
        const double angle = 6.283185307179586476925 * u2;
        const double z = std::sqrt(-2 * log_fixed(u1)) * (e % 2 == 0 ? cos_fixed(angle) : sin_fixed(angle));
        CHECK(flat[e] == static_cast<float>(z * 0.5));
    }
}

TEST_CASE("initial weights have the mean, deviation and tails of a normal distribution") {
    ParameterTable table;
    table.add("fc1.weight", {1000, 400}, kNormal);
    const std::vector<float> flat = initialised(table, 3, 2);
    const auto n = static_cast<double>(flat.size());
    double sum = 0, squares = 0;
    int beyond_two = 0;
    for (const float w : flat) {
        sum += w;
        squares += double{w} * w;
        beyond_two += std::fabs(w) > 1.0F ? 1 : 0;  // two deviations
    }
    CHECK(std::fabs(sum / n) < 4 * 0.5 / std::sqrt(n));                 // 4 standard errors
    CHECK(std::fabs(squares / n / 0.25 - 1) < 4 * std::sqrt(2.0 / n));  // of a variance
    CHECK(std::fabs(beyond_two / n - 0.0455) < 4 * std::sqrt(0.0455 * 0.9545 / n));
}

TEST_CASE("gaps between tensors and biases are zero") {
    ParameterTable table;
    table.add("fc1.bias", {3}, kZero);
    table.add("fc1.weight", {2, 2}, kNormal);
    const std::vector<float> flat = initialised(table, 1, 1);
    for (std::size_t i = 0; i < 16; ++i) CHECK(flat[i] == 0.0F);
    CHECK(flat[16] != 0.0F);
}

TEST_CASE("a dense weight behind a map goes from (h, w, c) columns to the file's (c, h, w) and back") {
    ParameterTable table;
    const SampleShape map{2, 3, 4};
    table.add("fc1.weight", {2, 24}, kNormal, map);
    const Parameter& weight = table[0];
    std::vector<float> memory(48), file(48), again(48);
    std::iota(memory.begin(), memory.end(), 0.0F);
    to_file_order(weight, memory.data(), file.data());
    for (int row = 0; row < 2; ++row) {
        for (int c = 0; c < 4; ++c) {
            for (int h = 0; h < 2; ++h) {
                for (int w = 0; w < 3; ++w) {
                    CHECK(file[static_cast<std::size_t>(row * 24 + (c * 2 + h) * 3 + w)] ==
                          memory[static_cast<std::size_t>(row * 24 + (h * 3 + w) * 4 + c)]);
                }
            }
        }
    }
    from_file_order(weight, file.data(), again.data());
    CHECK(again == memory);
}

TEST_CASE("initial weights behind a map are those of the same file without one") {
    ParameterTable plain, behind_map;
    plain.add("fc1.weight", {5, 30}, kNormal);
    behind_map.add("fc1.weight", {5, 30}, kNormal, {3, 2, 5});
    const std::vector<float> expected = initialised(plain, 4, 1);
    const std::vector<float> memory = initialised(behind_map, 4, 3);
    std::vector<float> file(memory.size());
    to_file_order(behind_map[0], memory.data(), file.data());
    CHECK(same_bytes(file, expected));
    CHECK_FALSE(same_bytes(memory, expected));
}

TEST_CASE("one channel or one place leaves the order alone") {
    ParameterTable table;
    table.add("a", {1, 6}, kNormal, {2, 3, 1});
    table.add("b", {1, 6}, kNormal, {1, 1, 6});
    CHECK(table[0].file_columns().empty());
    CHECK(table[1].file_columns().empty());
}

TEST_CASE("running values lie behind all parameters, and stand behind their layer's in files") {
    ParameterTable table;
    table.add("conv1.weight", {5, 1, 3, 3}, kNormal);
    table.add("bn1.weight", {5}, {Initial::Kind::kConstant, 1.0});
    table.add("bn1.bias", {5}, kZero);
    table.add_running("bn1", 5);
    table.add("bn2.weight", {3}, {Initial::Kind::kConstant, 1.0});
    table.add_running("bn2", 3);
    table.add("fc1.weight", {2, 5}, kNormal);
    CHECK(table.flat_elements() == 48 + 16 + 16 + 16 + 10);
    CHECK(table.trainable() == 45 + 5 + 5 + 3 + 10);
    std::vector<std::string> stored, placed;
    for (const Parameter& p : table.stored()) stored.push_back(p.name);
    for (const Parameter& p : table.placed()) placed.push_back(p.name);
    CHECK(stored == std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                             "bn1.running_var", "bn2.weight", "bn2.running_mean", "bn2.running_var",
                                             "fc1.weight"});
    CHECK(std::vector<std::string>(placed.begin() + 5, placed.end()) ==
          std::vector<std::string>{"bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var"});
    for (std::size_t i = 1; i < placed.size(); ++i) {
        CHECK(table.placed()[i].offset >= table.placed()[i - 1].offset + table.placed()[i - 1].count);
    }
    const Parameter& mean = table.placed()[5];
    CHECK(mean.offset == 112);
    CHECK(table.placed()[6].offset == mean.offset + 5);
    CHECK(table.placed()[7].offset == mean.offset + 16);
    CHECK(table.stored_elements() == mean.offset + 16 + 6);
    ThreadPool pool(1);
    std::vector<float> flat(static_cast<std::size_t>(table.stored_elements()), 7.0F);
    table.initialise(1, flat, pool);
    CHECK(flat[112] == 0.0F);
    CHECK(flat[117] == 1.0F);
}

}  // namespace lockstep
