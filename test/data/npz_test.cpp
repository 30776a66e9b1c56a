// NumPy's arrays of every version and type, alone and in archives, and archives whose sizes no file can have.
#include "data/npz.hpp"

#include <catch2/catch.hpp>

#include "data/npz_array.hpp"
#include "data/table_config.hpp"
#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kNpy = kFiles + "/npy/";

std::vector<float> elements(const NpyArray& array) {
    std::vector<float> all, row(static_cast<size_t>(array.row_elements()));
    for (int64_t i = 0; i < array.rows(); ++i) {
        array.row(i, row);
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

std::vector<float> counting(int count) {
    std::vector<float> all;
    for (int i = 0; i < count; ++i) all.push_back(static_cast<float>(i));
    return all;
}

NpyArray array_of(const std::string& name, int64_t memory = kTableMemory) {
    return {kNpy + name, "x", "", memory};
}

std::string refusal(const Config& config, ErrorKind kind = ErrorKind::kData) {
    const auto error = caught([&] { open_npz(config); });
    REQUIRE(error);
    CHECK(error->kind == kind);
    return error->message;
}

Config arrays_config(const std::string& x, const std::string& y) {
    Config config;
    config.data.format = "npz";
    config.data.train.images = x;
    config.data.train.labels = y;
    return config;
}

}  // namespace

TEST_CASE("arrays of every version, order and type are read as NumPy wrote them, from memory and from the disk") {
    for (const int64_t memory : {kTableMemory, int64_t{0}}) {
        CHECK(elements(array_of("f4_2x3.npy", memory)) == counting(6));
        CHECK(elements(array_of("f4_bigendian.npy", memory)) == counting(4));
        CHECK(elements(array_of("u1_4d.npy", memory)) == counting(96));
        CHECK(array_of("u1_4d.npy", memory).header().shape == std::vector<int64_t>{2, 3, 4, 4});
        CHECK(elements(array_of("i8_1d.npy", memory)) == std::vector<float>{-1, 0, 1099511627776.0F});
        CHECK(elements(array_of("bool.npy", memory)).size() == 3);
        CHECK(array_of("f4_v2.npy", memory).rows() == 3);
        CHECK(array_of("f4_v3.npy", memory).rows() == 3);
    }
    CHECK(elements(array_of("f8_fortran.npy")) == counting(6));
    CHECK(caught([] { array_of("f8_fortran.npy", 0); })->says("Fortran order and too large"));
}

TEST_CASE("an .npz is the same stored and deflated, from memory and from the disk") {
    const TempFolder cache;
    std::vector<std::vector<int32_t>> all;
    for (const char* name : {"xy_stored.npz", "xy_deflated.npz"}) {
        for (const int64_t memory : {kTableMemory, int64_t{0}}) {
            Config config = table_config("npz", kNpy + name);
            config.device.cache = cache.path();
            const DataSplits data = open_npz(config, memory);
            CHECK(data.train->size() == 20);
            CHECK(data.train->shape() == SampleShape{1, 1, 4});
            CHECK(data.train->classes() == 3);
            CHECK(data.train->label(4) == 1);
            CHECK(sample(*data.train, 2) == std::vector<float>{1, 1.125, 1.25, 1.375});
            all.push_back(contents(*data.train));
        }
    }
    for (const auto& other : all) CHECK(other == all[0]);
    CHECK(cache.names().size() == 4);  // x and y of the packed one, each with its sum
}

TEST_CASE("objects are refused, never unpickled") {
    const auto error = caught([] { array_of("numpy_py2-objarr.npy"); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->says("numpy_py2-objarr.npy: an array of Python objects"));
}

TEST_CASE("two .npy files are a data set; values are scaled, u1 as pixels") {
    const TempFolder folder;
    const auto npy = [&](const char* name, const std::string& dictionary, const std::string& data) {
        std::string head("\x93NUMPY\x01\x00", 8);
        head += static_cast<char>(dictionary.size());
        head += '\0';
        return folder.write(name, head + dictionary + data);
    };
    const std::string x = npy("x.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 1), }",
                              std::string("\x00\xff\x33\x66", 4));
    const std::string y =
        npy("y.npy", "{'descr': '|i1', 'fortran_order': False, 'shape': (2, 1)}", std::string("\x01\x00", 2));
    Config config = arrays_config(x, y);
    config.data.mean = {0.5};
    config.data.std = {0.25};
    const DataSplits data = open_npz(config);
    CHECK(data.train->shape() == SampleShape{2, 1, 1});
    CHECK(sample(*data.train, 0) == std::vector<float>{-2, 2});
    CHECK(sample(*data.train, 1)[0] == (51.0F / 255.0F - 0.5F) / 0.25F);
    CHECK(data.train->label(0) == 1);
    config.data.shape = {1, 1, 2};
    CHECK(open_npz(config).train->shape() == SampleShape{1, 1, 2});
    config.data.shape = {1, 1, 3};
    CHECK(refusal(config, ErrorKind::kUsage).find("data.shape = [1, 1, 3]") != std::string::npos);
    config.data.shape = {7623851, 2459346, 3935371};  // 2 in 64 bits, as a sample has
    CHECK(refusal(config, ErrorKind::kUsage).find("data.shape = [7623851, ") != std::string::npos);

    const std::string numbers = npy("t.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
                                    std::string("\0\0\xc0\x3f\0\0\0\x40", 8));
    const DataSplits regression = open_npz(arrays_config(x, numbers));
    CHECK(regression.train->classes() == 0);
    CHECK(std::bit_cast<float>(regression.train->label(0)) == 1.5F);

    const auto says = [&](const std::string& xs, const std::string& ys, const std::string& words) {
        const std::string message = refusal(arrays_config(xs, ys));
        INFO(message);
        CHECK(message.find(words) != std::string::npos);
    };
    says(x, npy("n", "{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", "\x01\xff"),
         "label -1 of sample 1 is out of range");
    says(x, npy("m", "{'descr': '|i1', 'fortran_order': False, 'shape': (1,)}", "\x01"), "holds 2 samples, but ");
    says(x, npy("s", "{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}", "\x01"), "(2,) elements of i1 need ");
    says(x, x, "one label for each sample is needed");
    says(kNpy + "scalar_0d.npy", y, "shape (); samples have one to four dimensions");
    says(x, npy("c", "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678"),
         "elements of <c8; one of b1, ");
    says(x, npy("d", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"), "one of b1, ");
    says(x, npy("e", "{'fortran_order': False, 'shape': (1,)}", "1"), "has no 'descr':");
    says(x, folder.write("f", std::string("PK")), "no zip archive");
}

TEST_CASE("a damaged archive is refused") {
    const TempFolder folder;
    Bytes bytes = read_file(kNpy + "xy_stored.npz");
    Bytes flipped = bytes;
    flipped[300] ^= std::byte{1};
    CHECK(refusal(table_config("npz", folder.write("flipped.npz", flipped))).find("CRC") != std::string::npos);
    bytes.resize(bytes.size() - 30);
    CHECK(refusal(table_config("npz", folder.write("cut.npz", bytes))).find("no zip archive") != std::string::npos);
    Config config = table_config("npz", kNpy + "xy_stored.npz");
    config.data.y = "labels";
    CHECK(refusal(config).find("xy_stored.npz: no array labels in it; it has x, y") != std::string::npos);
}

TEST_CASE("sizes and offsets that no file can have are refused, not believed") {
    const TempFolder folder;
    const Bytes whole = read_file(kNpy + "xy_stored.npz");
    const auto number = [](uint64_t value, size_t bytes) {
        std::string text;
        for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
        return text;
    };
    const std::string text = text_of(whole);
    const size_t entry = text.find("PK\x01\x02"), end = text.rfind("PK\x05\x06");
    REQUIRE((entry != std::string::npos && end != std::string::npos));
    const auto says = [&](const std::string& archive, const std::string& words) {
        const std::string message = refusal(table_config("npz", folder.write("odd.npz", archive)));
        INFO(message);
        CHECK(message.find(words) != std::string::npos);
    };
    std::string larger = text;
    larger.replace(entry + 24, 4, number(449, 4));  // of a member that is not packed
    says(larger, "member x.npy is said to have 449 bytes, packed into 448");

    // Sizes of 64 bits stand in an extra field: here -1.
    std::string negative = text;
    negative.replace(entry + 20, 8, number(UINT64_MAX, 8));
    negative.replace(entry + 30, 2, number(20, 2));
    negative.insert(entry + 46 + 5, number(1, 2) + number(16, 2) + number(UINT64_MAX, 8) + number(UINT64_MAX, 8));
    negative.replace(end + 20 + 12, 4, number(end + 20 - entry, 4));
    says(negative, "member x.npy is said to have -1 bytes, packed into -1");

    for (const uint64_t offset : {uint64_t{INT64_MAX}, uint64_t{INT64_MAX} - 40, UINT64_MAX}) {
        std::string far = text;  // where the directory of 64 bits would be
        far.insert(end, number(0x07064b50, 4) + number(0, 4) + number(offset, 8) + number(1, 4));
        says(far, "damaged: 56 bytes at ");
    }
    const std::string directory = number(0x06064b50, 4) + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) +
                                  number(2, 8) + number(2, 8) + number(INT64_MAX, 8) + number(1, 8);
    std::string endless = text;
    endless.insert(end, directory + number(0x07064b50, 4) + number(0, 4) + number(end, 8) + number(1, 4));
    says(endless, fmt::format("damaged: {} bytes at 0x1 are needed", INT64_MAX));
}

TEST_CASE("a shape whose bytes cannot be counted is none") {
    const TempFolder folder;
    const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846975,)}";
    std::string head("\x93NUMPY\x01\x00", 8);
    head += static_cast<char>(dictionary.size());
    head += '\0';
    const std::string path = folder.write("x.npy", head + dictionary);
    CHECK(refusal(arrays_config(path, path)).find("its header has a shape that is none") != std::string::npos);
}
