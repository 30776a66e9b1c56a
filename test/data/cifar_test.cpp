// CIFAR files: real records pixel by pixel, several files, packed ones, and each kind of broken file.
#include "data/cifar.hpp"

#include <catch2/catch.hpp>

#include "data/picture_fixture.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kTen = kPictures + "cifar10_test_first20.bin";
const std::string kHundred = kPictures + "cifar100_test_first20.bin";

std::vector<int32_t> labels_of(const Dataset& data) {
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < data.size(); ++i) labels.push_back(data.label(i));
    return labels;
}

std::vector<int> first_and_last(const Dataset& data, int64_t index) {
    std::vector<int> bytes = bytes_of_sample(data, index);
    bytes.erase(bytes.begin() + 3, bytes.end() - 3);
    return bytes;
}

}  // namespace

TEST_CASE("the records of CIFAR-10 have the labels and pixels that they are known to have") {
    const auto data = open_data(config_for("cifar", {kTen})).train;
    REQUIRE(data->size() == 20);
    CHECK(data->shape() == SampleShape{32, 32, 3});
    CHECK(data->classes() == 10);
    CHECK(labels_of(*data) == std::vector<int32_t>{3, 8, 8, 0, 6, 6, 1, 6, 3, 1, 0, 9, 5, 7, 9, 8, 5, 7, 8, 6});
    CHECK(first_and_last(*data, 0) == std::vector<int>{158, 112, 49, 21, 67, 110});
    check_facts(config_for("cifar", {kTen}));
}

TEST_CASE("of CIFAR-100 the fine label is read, or the coarse one where data.label says so") {
    Config config = config_for("cifar", {kHundred});
    const auto fine = open_data(config).train;
    CHECK(fine->classes() == 100);
    CHECK(labels_of(*fine) ==
          std::vector<int32_t>{49, 33, 72, 51, 71, 92, 15, 14, 23, 0, 71, 75, 81, 69, 40, 43, 92, 97, 70, 53});
    CHECK(first_and_last(*fine, 0) == std::vector<int>{199, 215, 249, 176, 164, 183});
    config.data.label = "coarse";
    const auto coarse = open_data(config).train;
    CHECK(coarse->classes() == 20);
    CHECK(coarse->label(0) == 10);
    CHECK(pixels_of(*coarse, 7) == pixels_of(*fine, 7));
    CHECK(coarse->fingerprint() != fine->fingerprint());
}

TEST_CASE("several files are one set, a glob names them in byte order, and a packed file is the file in it") {
    const TempFolder folder;
    const Bytes whole = read_file(kTen);
    const auto part = [&](size_t from, size_t to) { return std::span(whole).subspan(3073 * from, 3073 * (to - from)); };
    folder.write("b_2.bin", part(12, 20));
    folder.write("b_1.bin", part(0, 12));
    const auto one = open_data(config_for("cifar", {kTen})).train;
    Config config = config_for("cifar", {folder / "b_*.bin"});
    config.device.cache = folder / "cache";
    const auto two = open_data(config).train;
    REQUIRE(two->size() == 20);
    for (const int64_t i : {0, 11, 12, 19}) CHECK(pixels_of(*two, i) == pixels_of(*one, i));
    CHECK(labels_of(*two) == labels_of(*one));

    const TempFolder packed;
    packed.write("b_1.bin.gz", gzip(part(0, 12)));
    packed.write("b_2.bin.gz", gzip(part(12, 20)));
    config.data.train.paths = {packed / "b_1.bin.gz", packed / "b_2.bin.gz"};
    const auto unpacked = open_data(config).train;
    for (const int64_t i : {0, 11, 12, 19}) CHECK(pixels_of(*unpacked, i) == pixels_of(*one, i));
    CHECK(unpacked->fingerprint() == two->fingerprint());
    config.data.train.paths = {packed / "b_2.bin.gz", packed / "b_1.bin.gz"};
    CHECK(open_data(config).train->fingerprint() != two->fingerprint());
}

TEST_CASE("a folder stands for the files that the official archives have") {
    const TempFolder folder;
    const Bytes whole = read_file(kTen);
    const auto part = [&](size_t from, size_t to) { return std::span(whole).subspan(3073 * from, 3073 * (to - from)); };
    folder.write("data_batch_1.bin", part(0, 7));
    folder.write("data_batch_2.bin", part(7, 15));
    folder.write("test_batch.bin", part(15, 20));
    folder.write("batches.meta.txt", "airplane");
    Config config = config_for("cifar", {folder.path()});
    config.data.test.paths = {folder.path()};
    const DataSplits splits = open_data(config);
    CHECK((splits.train->size() == 15 && splits.test->size() == 5));
    CHECK(splits.test->label(0) == 8);
}

TEST_CASE("pixels are normalised by channel, resized to data.shape, and made gray where it has one channel") {
    Config config = config_for("cifar", {kTen});
    config.data.mean = {0.25, 0.5, 0.75};
    config.data.std = {0.5, 0.25, 2};
    const std::vector<float> pixels = pixels_of(*open_data(config).train, 0);
    CHECK(pixels[0] == (158.0f / 255.0f - 0.25f) / 0.5f);
    CHECK(pixels[1] == (112.0f / 255.0f - 0.5f) / 0.25f);
    CHECK(pixels[2] == (49.0f / 255.0f - 0.75f) / 2.0f);
    const auto small = open_data(config_for("cifar", {kTen}, {8, 16, 1})).train;
    CHECK(small->shape() == SampleShape{8, 16, 1});
    CHECK(bytes_of_sample(*small, 3).size() == 128);
    const auto gray = open_data(config_for("cifar", {kTen}, {32, 32, 1})).train;
    CHECK(bytes_of_sample(*gray, 0)[0] == (19595 * 158 + 38470 * 112 + 7471 * 49 + 32768) / 65536);
    const auto error = caught([] { open_data(config_for("cifar", {kTen}, {8, 16, 2})); });
    CHECK((error->kind == ErrorKind::kUsage && error->says("data.shape = [8, 16, 2]")));
}

TEST_CASE("broken files are refused by name, with the offset or the size, in one line") {
    const TempFolder folder;
    Bytes bytes = read_file(kTen);
    const std::string cut = folder.write("cut.bin", std::span(bytes).first(bytes.size() - 1));
    const std::string empty = folder.write("empty.bin", Bytes{});
    bytes[5 * 3073] = std::byte{10};
    const std::string label = folder.write("label.bin", bytes);
    Bytes hundred = read_file(kHundred);
    hundred[2 * 3074 + 1] = std::byte{100};
    const std::string fine = folder.write("fine.bin", hundred);
    const auto error_of = [&](const std::vector<std::string>& paths) {
        const auto error = caught([&] { open_data(config_for("cifar", paths)); });
        REQUIRE(error);
        CHECK(error->one_line());
        CHECK(caught([&] { data_facts(config_for("cifar", paths)); })->message == error->message);
        return *error;
    };
    CHECK(error_of({cut}).says(cut + ": 61459 bytes"));
    CHECK(error_of({empty}).says(empty + ": empty"));
    CHECK(error_of({label}).says(label + ": label 10 at 0x3c05: labels of cifar10 go from 0 to 9"));
    CHECK(error_of({fine}).says(fine + ": label 100 at 0x1805"));
    CHECK(error_of({kTen, kHundred}).says(kHundred + ": 61480 bytes are no multiple of 3073"));
    CHECK(error_of({folder / "none.bin"}).says("none.bin"));
    CHECK(error_of({folder.path()}).says("holds no data_batch_*.bin or train.bin"));
    CHECK(error_of({label}).kind == ErrorKind::kData);
    Config config = config_for("cifar", {kTen});
    config.data.test.paths = {kHundred};
    CHECK(caught([&] { open_data(config); })->says("data.train"));
}
