// CRC-32C: published values, and its definition bit by bit.
#include "io/crc32c.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("CRC-32C gives the values of RFC 3720, appendix B.4, and of the usual check string") {
    CHECK(crc32c(bytes_of("123456789")) == 0xe3069283);
    CHECK(crc32c(Bytes(32, std::byte{0})) == 0x8a9136aa);
    CHECK(crc32c(Bytes(32, std::byte{0xff})) == 0x62a8ab43);
    Bytes ascending, descending;
    for (int i = 0; i < 32; ++i) {
        ascending.push_back(static_cast<std::byte>(i));
        descending.push_back(static_cast<std::byte>(31 - i));
    }
    CHECK(crc32c(ascending) == 0x46dd794e);
    CHECK(crc32c(descending) == 0x113fdb5c);
    CHECK(crc32c({}) == 0);
}

TEST_CASE("CRC-32C of any length is that of its bits, one by one, and the mask is a rotation and a constant") {
    Bytes bytes;
    for (int i = 0; i < 40; ++i) {
        uint32_t crc = 0xffffffff;
        for (const std::byte b : bytes) {
            crc ^= std::to_integer<uint32_t>(b);
            for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
        }
        CHECK(crc32c(bytes) == ~crc);
        CHECK(masked_crc32c(bytes) == ((~crc >> 15 | ~crc << 17) + 0xa282ead8));
        bytes.push_back(static_cast<std::byte>(i * 83 + 5));
    }
}
