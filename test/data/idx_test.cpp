// IDX data sets: every element type and shape value by value, Fashion-MNIST, and each kind of broken file.
#include "data/idx.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

#include "config/config.hpp"
#include "data/idx_file.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist/";

template <class T>
void append_big_endian(Bytes& out, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof(T));
    out.insert(out.end(), bytes.rbegin(), bytes.rend());
}

Bytes header(uint8_t type, const std::vector<uint32_t>& extents) {
    Bytes bytes{std::byte{0}, std::byte{0}, std::byte{type}, static_cast<std::byte>(extents.size())};
    for (const uint32_t extent : extents) append_big_endian(bytes, extent);
    return bytes;
}

template <class T>
Bytes idx(uint8_t type, const std::vector<uint32_t>& extents, const std::vector<T>& values) {
    Bytes bytes = header(type, extents);
    for (const T value : values) append_big_endian(bytes, value);
    return bytes;
}

Bytes u8(const std::vector<uint32_t>& extents, const std::vector<uint8_t>& values) {
    return idx(0x08, extents, values);
}

// Three images of 1 x 2 and their labels.
const Bytes kImages = u8({3, 1, 2}, {0, 1, 127, 128, 254, 255});
const Bytes kLabels = u8({3}, {0, 2, 1});

Config config_of(const std::string& images, const std::string& labels) {
    Config config;
    config.data.train = {images, labels, {}};
    return config;
}

std::unique_ptr<Dataset> open(const TempFolder& folder, const Bytes& images, const Bytes& labels, Config config = {}) {
    config.data.train = {folder.write("images", images), folder.write("labels", labels), {}};
    return open_data(config).train;
}

std::vector<float> pixels_of(const Dataset& data, int64_t index) {
    std::vector<float> pixels(static_cast<size_t>(data.shape().elements()));
    CHECK(data.read(index, pixels) == data.label(index));
    return pixels;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a u8 pixel is ((u8 / 255) - mean) / std in three fp32 operations") {
    const TempFolder folder;
    Config config;
    config.data.mean = {0.2860};
    config.data.std = {0.3530};
    std::vector<uint8_t> all(256);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    const auto data = open(folder, u8({1, 16, 16}, all), u8({1}, {0}), config);
    std::vector<float> expected, twin;
    for (int v = 0; v < 256; ++v) {
        const volatile float unit = static_cast<float>(v) / 255.0f;
        const volatile float centred = unit - 0.2860f;
        expected.push_back(centred / 0.3530f);
        twin.push_back(static_cast<float>((v / 255.0 - 0.2860) / 0.3530));  // once rounded: other bits
    }
    CHECK(same_bits(pixels_of(*data, 0), expected));
    CHECK_FALSE(same_bits(pixels_of(*data, 0), twin));
}

TEST_CASE("mean and std may be given for each channel") {
    const TempFolder folder;
    Config config;
    config.data.mean = {0.0, 0.5, 1.0};
    config.data.std = {2.0};
    const auto data = open(folder, u8({1, 1, 2, 3}, {255, 255, 255, 0, 0, 0}), u8({1}, {1}), config);
    CHECK(data->shape() == SampleShape{1, 2, 3});
    CHECK(pixels_of(*data, 0) == std::vector<float>{0.5, 0.25, 0, 0, -0.25, -0.5});
    const auto floats = open(folder, idx<float>(0x0d, {1, 1, 2, 3}, {1, 1, 1, 0, 0, 0}), u8({1}, {1}), config);
    CHECK(pixels_of(*floats, 0) == std::vector<float>{0.5, 0.25, 0, 0, -0.25, -0.5});
}

TEST_CASE("every element type reads as its values, without the division by 255") {
    const TempFolder folder;
    Config config;
    config.data.mean = {1.0};
    config.data.std = {2.0};
    const std::vector<uint32_t> extents{2, 1, 2};
    const Bytes labels = u8({2}, {0, 1});
    const auto second = [&](const Bytes& images) {
        pixels_of(*open(folder, images, labels, config), 0);
        return pixels_of(*open(folder, images, labels, config), 1);
    };
    CHECK(second(idx<int8_t>(0x09, extents, {0, 0, -128, 127})) == std::vector<float>{-64.5, 63});
    CHECK(second(idx<int16_t>(0x0b, extents, {0, 0, -32768, 257})) == std::vector<float>{-16384.5, 128});
    CHECK(second(idx<int32_t>(0x0c, extents, {0, 0, -70000, 70001})) == std::vector<float>{-35000.5, 35000});
    CHECK(second(idx<float>(0x0d, extents, {0, 0, 0.5f, -3.0f})) == std::vector<float>{-0.25, -2});
    CHECK(second(idx<double>(0x0e, extents, {0, 0, 0.1, 1e10})) ==
          std::vector<float>{(0.1f - 1.0f) / 2.0f, (1e10f - 1.0f) / 2.0f});
}

TEST_CASE("labels may be of any type") {
    const TempFolder folder;
    for (const Bytes& labels :
         {u8({3}, {0, 2, 1}), idx<int8_t>(0x09, {3}, {0, 2, 1}), idx<int16_t>(0x0b, {3}, {0, 2, 1}),
          idx<int32_t>(0x0c, {3}, {0, 2, 1}), idx<float>(0x0d, {3}, {0, 2, 1}), idx<double>(0x0e, {3}, {0, 2, 1})}) {
        const auto data = open(folder, kImages, labels);
        CHECK(data->size() == 3);
        CHECK(data->classes() == 3);
        CHECK(std::vector<int32_t>{data->label(0), data->label(1), data->label(2)} == std::vector<int32_t>{0, 2, 1});
    }
    CHECK(open(folder, kImages, u8({3}, {0, 0, 0}))->classes() == 2);  // at least two
}

TEST_CASE("the extents after the first are height, width and channels, or channels alone") {
    const TempFolder folder;
    const std::vector<uint8_t> values(24, 7);
    const Bytes labels = u8({2}, {0, 1});
    CHECK(open(folder, u8({2, 3, 4}, values), labels)->shape() == SampleShape{3, 4, 1});
    CHECK(open(folder, u8({2, 2, 3, 2}, values), labels)->shape() == SampleShape{2, 3, 2});
    CHECK(open(folder, u8({2, 12}, values), labels)->shape() == SampleShape{1, 1, 12});
}

TEST_CASE("packed and plain files are the same data, told apart by content and not by name") {
    const TempFolder folder;
    const auto plain = open(folder, kImages, kLabels);
    const auto packed = open(folder, gzip(kImages), gzip(kLabels));
    CHECK(packed->fingerprint() == plain->fingerprint());
    for (int64_t i = 0; i < 3; ++i) CHECK(same_bits(pixels_of(*plain, i), pixels_of(*packed, i)));
    const Config config = config_of(folder.write("really-plain.gz", kImages), folder.write("packed", gzip(kLabels)));
    CHECK(open_data(config).train->fingerprint() == plain->fingerprint());
}

TEST_CASE("the fingerprint is of the contents: pixels, labels, extents and types, and of nothing else") {
    const TempFolder folder, elsewhere;
    const std::string fingerprint = open(folder, kImages, kLabels)->fingerprint();
    Config scaled;
    scaled.data.mean = {0.5};
    CHECK(open(elsewhere, kImages, kLabels, scaled)->fingerprint() == fingerprint);
    CHECK(open(folder, u8({3, 1, 2}, {0, 1, 127, 128, 254, 254}), kLabels)->fingerprint() != fingerprint);
    CHECK(open(folder, kImages, u8({3}, {0, 2, 2}))->fingerprint() != fingerprint);
    CHECK(open(folder, u8({3, 2, 1}, {0, 1, 127, 128, 254, 255}), kLabels)->fingerprint() != fingerprint);
    CHECK(open(folder, kImages, idx<int16_t>(0x0b, {3}, {0, 2, 1}))->fingerprint() != fingerprint);
}

TEST_CASE("a broken image file is a data error that names the file, the place, and what was expected and found") {
    const TempFolder folder;
    const Bytes packed = gzip(kImages);
    const auto first = [](const Bytes& bytes, size_t count) {
        return Bytes(bytes.begin(), bytes.begin() + static_cast<long>(count));
    };
    struct Row {
        Bytes images;
        const char* reason;
    };
    for (const Row& row : {
             Row{{}, "empty: an IDX file"},
             Row{gzip(Bytes()), "empty: 0 bytes after unpacking"},
             Row{first(kImages, 3), "truncated: 3 bytes, an IDX file starts with 4 bytes of magic"},
             Row{first(kImages, 15), "truncated: a header of 16 bytes is expected (3 dimensions), 15 bytes found"},
             Row{first(kImages, 21), "truncated: 3x1x2 elements of u8 (header at 0x0) need 22 bytes, found 21"},
             Row{first(packed, packed.size() - 5),
                 "truncated: the gzip data of the member at byte 0x0 end in its middle"},
             Row{gzip(first(kImages, 21)), "truncated: 3x1x2 elements of u8 (header at 0x0) need 22 bytes, found 21"},
             Row{joined(kImages, bytes_of("ab")), "2 bytes too many at 0x16: 3x1x2 elements of u8"},
             Row{joined(packed, bytes_of("ab")), "2 bytes at 0x"},
             Row{gzip(packed), "packed twice: unpacked once, it still is gzip data"},
             Row{bytes_of("\x89PNG\r\n"), "wrong magic at 0x0: expected 00 00 TT DD"},
             Row{bytes_of("<html>not found</html>"), "found 3c 68 74 6d: this is no IDX file"},
             Row{u8({}, {}), "found 00 00 08 00"},
             Row{header(0x0a, {1, 1, 1}), "found 00 00 0a 03"},
             Row{header(0x08, {0xffffffff, 0xffffffff, 0xffffffff}), "need more than 2^64 bytes, found 16"},
             Row{header(0x08, {0, 1, 2}), "the number of samples is 0 (0x1x2 at 0x4)"},
             Row{header(0x08, {3, 0, 2}), "an extent of the images is 0 (3x0x2 at 0x8)"},
             Row{kLabels, "this file has 1 (3, DD at 0x3); are images and labels swapped?"},
             Row{u8({1, 1, 1, 1, 1}, {0}), "images have 2 to 4 dimensions"},
         }) {
        const auto error = caught([&] { open(folder, row.images, kLabels); });
        CAPTURE(row.reason);
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK_THAT(error->message, Catch::StartsWith((folder / "images") + ": ") && Catch::Contains(row.reason));
        CHECK(error->one_line());
    }
}

TEST_CASE("a broken label file is a data error") {
    const TempFolder folder;
    struct Row {
        Bytes labels;
        const char* reason;
    };
    for (const Row& row : {
             Row{{}, "labels: empty"},
             Row{u8({3, 1}, {0, 1, 2}), "labels have 1 dimension, this file has 2 (3x1, DD at 0x3)"},
             Row{idx<int8_t>(0x09, {3}, {0, -1, 2}), "label -1 of sample 1 at 0x9 is out of range"},
             Row{idx<int32_t>(0x0c, {3}, {0, 1, 1 << 20}), "label 1048576 of sample 2 at 0x10 is out of range"},
             Row{idx<float>(0x0d, {3}, {0.5f, 1, 2}), "label 0.5 of sample 0 at 0x8 is out of range"},
             Row{idx<float>(0x0d, {3}, {0, std::numeric_limits<float>::quiet_NaN(), 2}), "label nan of sample 1"},
             Row{idx<double>(0x0e, {3}, {0, 1, 1e300}), "label 1e+300 of sample 2"},
         }) {
        const auto error = caught([&] { open(folder, kImages, row.labels); });
        CAPTURE(row.reason);
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK_THAT(error->message, Catch::Contains(folder / "labels") && Catch::Contains(row.reason));
        CHECK(error->one_line());
    }
}

TEST_CASE("images and labels of different counts are refused with both counts") {
    const TempFolder folder;
    const auto error = caught([&] { open(folder, kImages, u8({4}, {0, 1, 2, 0})); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->message ==
          fmt::format("{} holds 3 images, but {} holds 4 labels (counts at 0x4); the two do not belong together",
                      folder / "images", folder / "labels"));
}

TEST_CASE("a path that is missing or a folder is a data error with the system's reason") {
    const TempFolder folder;
    const std::string labels = folder.write("labels", kLabels);
    auto error = caught([&] { open_data(config_of(folder / "none", labels)); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->message == "cannot open " + (folder / "none") + ": No such file or directory");
    error = caught([&] { open_data(config_of(folder.path(), labels)); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->says("it is a folder"));
}

TEST_CASE("test data must fit the training data") {
    const TempFolder folder;
    Config config = config_of(folder.write("images", kImages), folder.write("labels", kLabels));
    config.data.test = config.data.train;
    const DataSplits splits = open_data(config);
    REQUIRE(splits.test);
    CHECK(splits.test->fingerprint() == splits.train->fingerprint());
    CHECK(splits.test->classes() == 3);

    config.data.test = {folder.write("i", kImages), folder.write("l", u8({3}, {0, 3, 1})), {}};
    auto error = caught([&] { open_data(config); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->message ==
          (folder / "l") + ": label 3 of sample 1 at 0x9 is out of range: the training labels go from 0 to 2");

    config.data.test = {folder.write("i", u8({3, 2, 1}, {1, 2, 3, 4, 5, 6})), folder.write("l", kLabels), {}};
    error = caught([&] { open_data(config); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->says("samples of [1, 2, 1], but " + (folder / "i") + " of [2, 1, 1]"));
}

TEST_CASE("settings that do not fit the files are usage errors that name the key") {
    const TempFolder folder;
    const auto refused = [&](const char* key, auto change) {
        Config config;
        change(config.data);
        const auto error = caught([&] { open(folder, kImages, kLabels, config); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        CHECK(error->says(key));
    };
    refused("data.shape", [](Config::Data& d) { d.shape = {28, 28, 1}; });
    refused("data.mean: 3 values, but the data have 1 channel;", [](Config::Data& d) { d.mean = {0, 0, 0}; });
    refused("data.std: 2 values", [](Config::Data& d) { d.std = {1, 1}; });
    refused("data.std", [](Config::Data& d) { d.std = {0}; });
    refused("data.std", [](Config::Data& d) { d.std = {1e-60}; });
    Config config;
    config.data.shape = {1, 2, 1};
    CHECK(open(folder, kImages, kLabels, config)->size() == 3);

    for (const DataPaths& paths : {DataPaths{}, DataPaths{"x", "", {}}, DataPaths{"", "x", {}}}) {
        config = {};
        config.data.train = paths;
        const auto error = caught([&] { open_data(config); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        CHECK(error->says("data.train"));
    }
}

TEST_CASE("a sample that does not exist cannot be read") {
    const TempFolder folder;
    const auto data = open(folder, kImages, kLabels);
    std::vector<float> pixels(2), few(1);
    CHECK_THROWS_AS(data->read(3, pixels), Error);
    CHECK_THROWS_AS(data->read(-1, pixels), Error);
    CHECK_THROWS_AS(data->read(0, few), Error);
    CHECK_THROWS_AS(data->label(3), Error);
}

TEST_CASE("Fashion-MNIST opens whole and quickly") {
    const std::string folder = kFashion;
    if (!std::filesystem::exists(folder + "train-images-idx3-ubyte.gz")) {
        WARN("skipped: the Debian package dataset-fashion-mnist is not installed");
        return;
    }
    Config config = config_of(folder + "train-images-idx3-ubyte.gz", folder + "train-labels-idx1-ubyte.gz");
    config.data.test = {folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz", {}};
    const auto start = std::chrono::steady_clock::now();
    const DataSplits splits = open_data(config);
    const std::chrono::duration<double, std::milli> opened = std::chrono::steady_clock::now() - start;

    CHECK(splits.train->size() == 60'000);
    CHECK(splits.test->size() == 10'000);
    CHECK(splits.train->shape() == SampleShape{28, 28, 1});
    CHECK(splits.train->classes() == 10);
    std::vector<int> counts(10);
    for (int64_t i = 0; i < 60'000; ++i) ++counts[static_cast<size_t>(splits.train->label(i))];
    CHECK(counts == std::vector<int>(10, 6000));

    const auto reading = std::chrono::steady_clock::now();
    double sum = 0;
    std::vector<float> pixels(784);
    for (int64_t i = 0; i < 60'000; ++i) {
        splits.train->read(i, pixels);
        if (i % 100 == 0) {
            for (const float p : pixels) sum += p;
        }
    }
    const std::chrono::duration<double, std::micro> read = std::chrono::steady_clock::now() - reading;
    CHECK(sum / 784 / 600 == Approx(0.286).epsilon(0.02));  // the mean that is in every recipe
    fmt::print("Fashion-MNIST: opened in {:.0f} ms, {:.2f} us a sample read\n", opened.count(), read.count() / 60'000);
}
