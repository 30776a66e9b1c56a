// gunzip: any number of members, each checked; anything else refused with the place where it went wrong.
#include <catch2/catch.hpp>
#include <random>

#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Bytes noise(size_t size, unsigned seed, unsigned values = 256) {
    std::mt19937 random(seed);
    Bytes bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % values);
    return bytes;
}

}  // namespace

TEST_CASE("what was packed comes out, whatever its size and however well it packs") {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024}, size_t{1025}, size_t{300'000}}) {
        for (const unsigned values : {1u, 3u, 256u}) {
            const Bytes bytes = noise(size, 7, values);
            CHECK(gunzip(gzip(bytes), "f.gz") == bytes);
        }
    }
    const Bytes zeros(20'000'000);  // packs a thousandfold: its size is no use as a first guess
    CHECK(gunzip(gzip(zeros), "f.gz") == zeros);
}

TEST_CASE("several members are one file") {
    const Bytes a = noise(100'000, 1, 4), b = noise(10, 2), c = noise(0, 3), d = noise(50'000, 4);
    const Bytes packed = joined(joined(joined(gzip(a), gzip(b)), gzip(c)), gzip(d));
    CHECK(gunzip(packed, "f.gz") == joined(joined(joined(a, b), c), d));
}

TEST_CASE("only gzip data look gzipped") {
    CHECK(looks_gzipped(gzip(noise(5, 1))));
    CHECK_FALSE(looks_gzipped(bytes_of("\x1f")));
    CHECK_FALSE(looks_gzipped(bytes_of("plain")));
}

TEST_CASE("a file cut anywhere is named as truncated, with what was there") {
    const Bytes bytes = noise(50'000, 5, 16);
    const Bytes packed = gzip(bytes);
    for (const size_t keep : {size_t{2}, size_t{9}, size_t{10}, size_t{11}, size_t{500}, packed.size() / 2,
                              packed.size() - 9, packed.size() - 8, packed.size() - 4, packed.size() - 1}) {
        const auto error = caught([&] { gunzip(std::span(packed).first(keep), "f.gz"); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says("f.gz: truncated"));
        CHECK(error->says(fmt::format("after {} packed bytes", keep)));
        CHECK(error->one_line());
    }
    const Bytes two = joined(packed, packed);
    const auto error = caught([&] { gunzip(std::span(two).first(two.size() - 3), "f.gz"); });
    REQUIRE(error);
    CHECK(error->says(fmt::format("the member at byte 0x{:x}", packed.size())));
}

TEST_CASE("a flipped bit anywhere is an error and never other data") {
    const Bytes bytes = noise(3'000, 6, 16);
    const Bytes packed = gzip(bytes);
    int refused = 0;
    for (size_t i = 0; i < packed.size(); ++i) {
        Bytes damaged = packed;
        damaged[i] ^= std::byte{0x10};
        Bytes unpacked;
        if (const auto error = caught([&] { unpacked = gunzip(damaged, "f.gz"); })) {
            ++refused;
            CHECK(error->kind == ErrorKind::kData);
        } else {
            CHECK(unpacked == bytes);  // time stamp, system and the like carry no data
            CHECK(i < 10);
        }
    }
    CHECK(refused >= static_cast<int>(packed.size()) - 10);
}

TEST_CASE("a wrong checksum and a wrong size are told apart from a truncated file") {
    Bytes packed = gzip(noise(3'000, 6, 16));
    packed[packed.size() - 6] ^= std::byte{1};
    auto error = caught([&] { gunzip(packed, "f.gz"); });
    REQUIRE(error);
    CHECK(error->says("damaged gzip data"));
    CHECK(error->says("incorrect data check"));
    packed[packed.size() - 6] ^= std::byte{1};
    packed[packed.size() - 4] ^= std::byte{1};
    error = caught([&] { gunzip(packed, "f.gz"); });
    REQUIRE(error);
    CHECK(error->says("incorrect length check"));
}

TEST_CASE("bytes behind the last member, data that are not packed, and an empty file are refused") {
    const Bytes packed = gzip(noise(100, 8));
    struct Row {
        Bytes bytes;
        std::string message;
    };
    for (const Row& row :
         {Row{joined(packed, bytes_of("tail")), fmt::format("f.gz: 4 bytes at 0x{:x} are no gzip data", packed.size())},
          Row{joined(packed, Bytes(512)), fmt::format("512 bytes at 0x{:x}", packed.size())},
          Row{bytes_of("plain text"), "f.gz: 10 bytes at 0x0 are no gzip data"}, Row{{}, "f.gz: empty"}}) {
        const auto error = caught([&] { gunzip(row.bytes, "f.gz"); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says(row.message));
    }
}
