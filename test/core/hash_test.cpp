// The hashes that witness a run: the values that their standards publish.
#include "core/hash.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/error.hpp"

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

// FIPS 180-4, example of one block.
constexpr const char* kHashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kHashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST_CASE("SHA-256 gives the published values, in one piece or in several", "[hash]") {
    Sha256 nothing;
    CHECK(nothing.hex() == kHashOfNothing);
    Sha256 whole;
    whole.update(bytes_of("abc"));
    CHECK(whole.hex() == kHashOfAbc);
    Sha256 pieces;
    pieces.update(bytes_of("a"));
    pieces.update(bytes_of(""));
    pieces.update(bytes_of("bc"));
    CHECK(pieces.hex() == kHashOfAbc);
    CHECK_THROWS_AS(pieces.hex(), Error);
    CHECK_THROWS_AS(pieces.update(bytes_of("d")), Error);
}

TEST_CASE("the hash of a file is that of its bytes, and a file that cannot be read is named", "[hash]") {
    const auto path = std::filesystem::temp_directory_path() / "lockstep_hash_test ü.bin";
    std::ofstream(path, std::ios::binary) << "abc";
    CHECK(sha256_of_file(path.string()) == kHashOfAbc);
    std::filesystem::remove(path);
    CHECK_THROWS_WITH(sha256_of_file(path.string()), Catch::Contains(path.string()) && Catch::Contains("No such file"));
    CHECK_THROWS_WITH(sha256_of_file(std::filesystem::temp_directory_path().string()), Catch::Contains("directory"));
}

TEST_CASE("the 64-bit hash is XXH3 with its seed", "[hash]") {
    CHECK(hex16(hash64({})) == "2d06800538d394c2");  // XXH3_64bits of nothing, as xxhash documents it
    CHECK(hash64(bytes_of("abc")) != hash64(bytes_of("abd")));
    CHECK(hash64(bytes_of("abc")) != hash64(bytes_of("abc"), 1));
    CHECK(hex16(0) == "0000000000000000");
    CHECK(hex16(0xabcdef) == "0000000000abcdef");
}

}  // namespace
}  // namespace lockstep
