// Synthetic data: a function of (seed, index) and nothing else, balanced, and learnable.
#include "data/synthetic.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstring>

#include "config/config.hpp"
#include "core/hash.hpp"
#include "core/philox.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Config config_of(std::vector<int64_t> shape, int64_t samples, int64_t classes = 10) {
    Config config;
    config.data.format = "synthetic";
    config.data.shape = std::move(shape);
    config.data.samples = samples;
    config.data.classes = classes;
    return config;
}

std::vector<float> pixels_of(const Dataset& data, int64_t index) {
    std::vector<float> pixels(static_cast<size_t>(data.shape().elements()));
    CHECK(data.read(index, pixels) == data.label(index));
    return pixels;
}

// All labels and pixels, as one number.
uint64_t contents(const Dataset& data) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < data.size(); ++i) {
        const std::vector<float> pixels = pixels_of(data, i);
        const int32_t label = data.label(i);
        hash = hash64(std::as_bytes(std::span(pixels)), hash);
        hash = hash64(std::as_bytes(std::span(&label, 1)), hash);
    }
    return hash;
}

}  // namespace

TEST_CASE("a sample is what its definition says") {
    const std::vector<int64_t> shape{3, 5, 1};
    const int64_t elements = 15, classes = 4;
    Config config = config_of(shape, 20, classes);
    config.seed = 77;
    config.data.mean = {0.25};
    config.data.std = {1.5};
    const DataSplits splits = open_synthetic(config);
    const RandomStream random(77, Purpose::kSyntheticSample), teacher(77, Purpose::kSyntheticTeacher);
    for (int64_t i = 0; i < 20; ++i) {
        std::vector<int> s;
        for (uint64_t e = 0; e < static_cast<uint64_t>(elements); ++e) {
            const uint32_t word = random.bits(e, static_cast<uint64_t>(i));
            s.push_back(static_cast<int>((word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24)) - 510);
        }
        const auto weight = [&](int64_t k, size_t e) {
            return static_cast<int>(teacher.bits(e, static_cast<uint64_t>(k)) >> 28) * 2 - 15;
        };
        int64_t best = 0, best_score = INT64_MIN;
        for (int64_t k = 0; k < classes; ++k) {
            int64_t score = 0;
            for (size_t e = 0; e < s.size(); ++e) score += weight(k, e) * s[e];
            if (score > best_score) {
                best = k;
                best_score = score;
            }
        }
        std::vector<float> expected;
        for (size_t e = 0; e < s.size(); ++e) {
            const volatile float unit = static_cast<float>(s[e] + weight(best, e)) / 148.0f;
            const volatile float centred = unit - 0.25f;
            expected.push_back(centred / 1.5f);
        }
        CHECK(splits.train->label(i) == best);
        CHECK(pixels_of(*splits.train, i) == expected);
    }
}

TEST_CASE("samples kept in memory and samples made when read are the same, whatever the shape") {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{28, 28, 1}, {1, 1, 1}, {5, 3, 3}, {32, 32, 1}, {32, 33, 1}, {40, 41, 3}, {97, 101, 1}}) {
        Config config = config_of(shape, 7);
        config.data.test_samples = 3;
        if (shape[2] == 3) config.data.mean = {0.1, 0.2, 0.3};
        const DataSplits kept = open_synthetic(config), made = open_synthetic(config, 0);
        CHECK(contents(*kept.train) == contents(*made.train));
        CHECK(contents(*kept.test) == contents(*made.test));
        CHECK(contents(*kept.train) != contents(*kept.test));
        CHECK(kept.train->fingerprint() == made.train->fingerprint());
    }
}

TEST_CASE("a sample does not depend on how many there are, and the test samples go on where training ends") {
    const DataSplits ten = open_synthetic(config_of({4, 4, 1}, 10)), many = open_synthetic(config_of({4, 4, 1}, 300));
    for (int64_t i = 0; i < 10; ++i) CHECK(pixels_of(*ten.train, i) == pixels_of(*many.train, i));
    for (int64_t i = 0; i < 256; ++i) CHECK(ten.test->label(i) == many.train->label(i < 290 ? i + 10 : i));
    CHECK(pixels_of(*ten.test, 5) == pixels_of(*many.train, 15));
}

TEST_CASE("another seed is another data set") {
    Config config = config_of({4, 4, 1}, 50);
    const DataSplits one = open_synthetic(config), again = open_synthetic(config);
    config.seed = 2;
    const DataSplits two = open_synthetic(config);
    CHECK(contents(*one.train) == contents(*again.train));
    CHECK(contents(*one.train) != contents(*two.train));
    CHECK(one.train->fingerprint() != two.train->fingerprint());
    CHECK(one.train->fingerprint() != one.test->fingerprint());
}

TEST_CASE("the data are these on every machine") {
    const DataSplits splits = open_synthetic(config_of({28, 28, 1}, 100));
    CHECK(hex16(contents(*splits.train)) == "a10f1bd0daae0694");
    CHECK(hex16(contents(*open_synthetic(config_of({40, 41, 3}, 10)).train)) == "c0009a1fe9b0ac1b");
}

TEST_CASE("no class of ten is rare, and pixels have mean 0 and deviation 1") {
    const DataSplits splits = open_synthetic(config_of({}, 1003));
    CHECK(splits.train->shape() == SampleShape{28, 28, 1});
    CHECK(splits.train->classes() == 10);
    std::vector<int> counts(10);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 1003; ++i) {
        ++counts.at(static_cast<size_t>(splits.train->label(i)));
        for (const float p : pixels_of(*splits.train, i)) {
            sum += p;
            squares += p * p;
        }
    }
    for (const int count : counts) CHECK((count > 60 && count < 150));
    const double n = 1003 * 784, mean = sum / n;
    CHECK(std::abs(mean) < 0.01);
    CHECK(std::sqrt(squares / n - mean * mean) == Approx(1.0).epsilon(0.02));
}

TEST_CASE("what is learned from the training samples holds for the test samples") {
    // The mean of each class as a classifier: far cruder than an mlp, and well above chance (0.1) already.
    const DataSplits splits = open_synthetic(config_of({}, 1003));
    std::vector<std::vector<double>> means(10, std::vector<double>(784));
    for (int64_t i = 0; i < splits.train->size(); ++i) {
        const std::vector<float> pixels = pixels_of(*splits.train, i);
        for (size_t e = 0; e < 784; ++e) means[static_cast<size_t>(splits.train->label(i))][e] += pixels[e];
    }
    int correct = 0;
    for (int64_t i = 0; i < splits.test->size(); ++i) {
        const std::vector<float> pixels = pixels_of(*splits.test, i);
        size_t best = 0;
        double best_score = -1e300;
        for (size_t k = 0; k < 10; ++k) {
            double score = 0;
            for (size_t e = 0; e < 784; ++e) score += pixels[e] * means[k][e];
            if (score > best_score) {
                best = k;
                best_score = score;
            }
        }
        correct += static_cast<int32_t>(best) == splits.test->label(i) ? 1 : 0;
    }
    CHECK(correct > 256 / 2);
}

TEST_CASE("settings that make no data are usage errors that name the key") {
    const auto refused = [](const char* key, auto change) {
        Config config = config_of({}, 10);
        change(config.data);
        const auto error = caught([&] { open_data(config); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        CHECK(error->says(key));
    };
    refused("data.samples", [](Config::Data& d) { d.samples = 0; });
    refused("data.test_samples", [](Config::Data& d) { d.test_samples = -1; });
    refused("data.classes", [](Config::Data& d) { d.classes = 1; });
    refused("data.shape", [](Config::Data& d) { d.shape = {28, 28}; });
    refused("data.shape", [](Config::Data& d) { d.shape = {28, 0, 1}; });
    refused("data.mean", [](Config::Data& d) { d.mean = {0, 0}; });
    Config config = config_of({}, 10);
    config.data.test_samples = 0;
    CHECK(open_data(config).test == nullptr);
}

TEST_CASE("synthetic data cost little") {
    const auto now = [] { return std::chrono::steady_clock::now(); };
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const auto start = now();
    const DataSplits kept = open_synthetic(config_of({}, 1003));
    const Milliseconds opened = now() - start;
    const DataSplits made = open_synthetic(config_of({}, 1003), 0);
    std::vector<float> pixels(784);
    const auto cost = [&](const Dataset& data) {
        const auto reading = now();
        for (int64_t i = 0; i < 1003; ++i) data.read(i, pixels);
        return Milliseconds(now() - reading).count() / 1003 * 1000;
    };
    fmt::print("synthetic: opened in {:.1f} ms; a sample from memory {:.2f} us, made {:.2f} us\n", opened.count(),
               cost(*kept.train), cost(*made.train));
}
