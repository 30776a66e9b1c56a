// Arrays, records and folders of pictures that are larger than what is held stay on the disk: the peak of memory says
// so. Beside each stands a twin that holds them, and must be seen.
#include <fmt/format.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "data/memory_growth.hpp"
#include "data/npz.hpp"
#include "data/picture_fixture.hpp"
#include "io/crc32c.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kLarge = 32 * kMegabyte;   // of a data set
constexpr int64_t kLittle = 12 * kMegabyte;  // that training on it may take

template <class T>
std::string little_endian(T value) {
    std::string bytes;
    for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
    return bytes;
}

std::string npy_header(const std::string& type, const std::string& shape) {
    std::string words = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
    words.append(118 - words.size() - 1, ' ') += '\n';
    return std::string("\x93NUMPY\1\0", 8) + little_endian(static_cast<uint16_t>(words.size())) + words;
}

/// As np.savez writes it (`packed`: np.savez_compressed): members behind one another, then their directory.
std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool packed) {
    std::string file, directory;
    for (const auto& [name, contents] : members) {
        const auto* const bytes = reinterpret_cast<const Bytef*>(contents.data());
        const auto crc = static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(contents.size())));
        std::string stored = contents;
        if (packed) {
            z_stream stream{};
            REQUIRE(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
            stored.resize(deflateBound(&stream, contents.size()));
            stream.next_in = const_cast<Bytef*>(bytes);
            stream.avail_in = static_cast<uInt>(contents.size());
            stream.next_out = reinterpret_cast<Bytef*>(stored.data());
            stream.avail_out = static_cast<uInt>(stored.size());
            REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
            stored.resize(stream.total_out);
            deflateEnd(&stream);
        }
        const std::string common = little_endian<uint16_t>(20) + little_endian<uint16_t>(0) +
                                   little_endian<uint16_t>(packed ? 8 : 0) + little_endian<uint32_t>(0) +
                                   little_endian(crc) + little_endian(static_cast<uint32_t>(stored.size())) +
                                   little_endian(static_cast<uint32_t>(contents.size())) +
                                   little_endian(static_cast<uint16_t>(name.size())) + little_endian<uint16_t>(0);
        directory += "PK\1\2" + little_endian<uint16_t>(20) + common + std::string(10, '\0') +
                     little_endian(static_cast<uint32_t>(file.size())) + name;
        file += "PK\3\4" + common + name + stored;
    }
    const auto count = little_endian(static_cast<uint16_t>(members.size()));
    return file + directory + "PK\5\6" + std::string(4, '\0') + count + count +
           little_endian(static_cast<uint32_t>(directory.size())) + little_endian(static_cast<uint32_t>(file.size())) +
           std::string(2, '\0');
}

void read_some(const Dataset& data) {
    std::vector<float> values(static_cast<size_t>(data.shape().elements()));
    for (int64_t i = 0; i < 300; ++i) data.read(i * 7919 % data.size(), values);
}

/// One message of the wire format.
std::string field(int number, const std::string& bytes) {
    std::string length;
    for (size_t left = bytes.size(); length.empty() || left > 0; left >>= 7) {
        if (!length.empty()) length.back() = static_cast<char>(length.back() | 0x80);
        length += static_cast<char>(left & 0x7f);
    }
    return static_cast<char>(number << 3 | 2) + length + bytes;
}

/// A picture with so many bytes behind it, as some cameras leave them.
std::string padded_picture(int64_t bytes) {
    return text_of(read_file(kPictures + "cifar10_png/3/00.png")) + std::string(static_cast<size_t>(bytes), 'x');
}

}  // namespace

TEST_CASE(
    "arrays of 32 MB, in files of their own or in an archive, stored or packed, are trained from in less than 12 MB") {
    const TempFolder folder;
    constexpr int64_t kValues = 1024;
    constexpr int64_t kRows = kLarge / kValues / 4;
    Config config;
    config.data.format = "npz";
    config.device.cache = folder / "cache";
    {
        std::string labels = npy_header("<i4", fmt::format("({},)", kRows));
        for (int64_t i = 0; i < kRows; ++i) labels += little_endian(static_cast<uint32_t>(i % 3));
        std::string x = npy_header("<f4", fmt::format("({}, {})", kRows, kValues));
        for (uint32_t i = 0; i < kRows * kValues; ++i) x.append(little_endian(0x3f000000U + (i * 2654435761U >> 9)));
        folder.write("x.npy", x);
        folder.write("y.npy", labels);
        folder.write("stored.npz", zip({{"x.npy", x}, {"y.npy", labels}}, false));
        folder.write("packed.npz", zip({{"x.npy", x}, {"y.npy", labels}}, true));
    }
    const auto check = [&](const char* name) {
        INFO(name);
        const auto train = [&](int64_t memory) {
            return growth([&] {
                const DataSplits data = open_npz(config, memory);
                REQUIRE(data.train->size() == kRows);
                read_some(*data.train);
            });
        };
        CHECK(train(kMegabyte) < kLittle);
        CHECK(train(kTableMemory) > kLarge - kMegabyte);  // held: this measures memory
    };
    config.data.train.images = folder / "x.npy";
    config.data.train.labels = folder / "y.npy";
    check("x.npy");
    config.data.train = {};
    for (const char* name : {"stored.npz", "packed.npz"}) {
        config.data.train.paths = {folder / name};
        check(name);
    }
}

TEST_CASE("TFRecords of 32 MB are trained from in less than 12 MB, indexed or not") {
    const TempFolder folder;
    Config config = config_for("tfrecord", {folder / "large.tfrecord"}, {8, 8, 3});
    config.device.cache = folder / "cache";
    {
        const auto feature = [](const std::string& name, int kind, const std::string& list) {
            return field(1, field(1, name) + field(2, field(kind, list)));
        };
        const std::string picture = field(1, padded_picture(kMegabyte / 4));
        std::string file;
        for (int i = 0; i < 128; ++i) {
            const std::string data = field(1, feature("image/encoded", 1, picture) +
                                                  feature("image/class/label", 3, {8, static_cast<char>(i % 5)}));
            const std::string length = little_endian(uint64_t{data.size()});
            file += length + little_endian(masked_crc32c(bytes_of(length))) + data +
                    little_endian(masked_crc32c(bytes_of(data)));
        }
        folder.write("large.tfrecord", file);
    }
    for (int start = 0; start < 2; ++start) {  // the second finds the index
        const int64_t grown = growth([&] {
            const DataSplits data = open_data(config);
            REQUIRE(data.train->size() == 128);
            read_some(*data.train);
        });
        CHECK(grown < kLittle);
    }
    CHECK(growth([&] { read_file(folder / "large.tfrecord"); }) > kLarge - kMegabyte);
}

TEST_CASE("a folder of 32 MB of pictures is trained from in less than 12 MB") {
    const TempFolder folder;
    {
        const std::string picture = padded_picture(kMegabyte / 4);
        for (int i = 0; i < 128; ++i) {
            fs::create_directories(folder / std::to_string(i % 3));
            folder.write(fmt::format("{}/{}.png", i % 3, i), picture);
        }
    }
    const Config config = config_for("image_folder", {folder.path()}, {8, 8, 3});
    std::vector<Bytes> all;
    CHECK(growth([&] {
              const DataSplits data = open_data(config);
              REQUIRE(data.train->size() == 128);
              read_some(*data.train);
          }) < kLittle);
    CHECK(growth([&] {
              for (int i = 0; i < 128; ++i)
                  all.push_back(read_file(fmt::format("{}/{}/{}.png", folder.path(), i % 3, i)));
          }) > kLarge - kMegabyte);
}
