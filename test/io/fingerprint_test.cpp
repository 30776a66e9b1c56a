// The fingerprint of files that are larger than 256 MiB: sparse ones, of which only what is written takes room.
#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "io/source_files.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

/// A file of zeros that takes no room.
std::string sparse(const TempFolder& folder, const std::string& name, int64_t bytes) {
    const std::string path = folder.write(name, std::string());
    fs::resize_file(path, static_cast<uintmax_t>(bytes));
    return path;
}

/// The fingerprint with another byte at `offset`, where a zero is put back.
std::string changed_at(const std::string& path, int64_t offset) {
    const auto write = [&](char byte) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(offset);
        file.put(byte);
    };
    write('x');
    const std::string found = file_fingerprint(path);
    write('\0');
    return found;
}

}  // namespace

TEST_CASE("of a file beyond 256 MiB the size, the first and the last MiB count, and nothing between") {
    const TempFolder folder;
    constexpr int64_t kSize = kHashedWhole + 12345;
    const std::string path = sparse(folder, "large.bin", kSize);
    const std::string plain = file_fingerprint(path);
    CHECK(plain.starts_with("large.bin 268447801 "));
    for (const int64_t counts : {int64_t{0}, kHashedEnd - 1, kSize - kHashedEnd, kSize - 1}) {
        INFO(counts);
        CHECK(changed_at(path, counts) != plain);
    }
    for (const int64_t between : {kHashedEnd, kSize / 2, kSize - kHashedEnd - 1}) {
        INFO(between);
        CHECK(changed_at(path, between) == plain);
    }
    fs::resize_file(path, kSize + 1);
    CHECK(file_fingerprint(path) != plain);
    fs::resize_file(path, kSize);
    fs::rename(path, folder / "other.bin");
    CHECK(file_fingerprint(folder / "other.bin") != plain);
    // The same contents elsewhere are the same.
    fs::create_directories(folder / "moved");
    fs::rename(folder / "other.bin", folder / "moved/large.bin");
    CHECK(file_fingerprint(folder / "moved/large.bin") == plain);
}

TEST_CASE("of a file of 256 MiB every byte counts") {
    const TempFolder folder;
    const std::string path = sparse(folder, "whole.bin", kHashedWhole);
    const std::string plain = file_fingerprint(path);
    CHECK(changed_at(path, kHashedWhole / 2) != plain);
}

TEST_CASE("the middle of a large file is not read") {
    const TempFolder folder;
    const std::string path = sparse(folder, "huge.bin", int64_t{64} << 30);  // whole it would take half a minute
    const std::clock_t start = std::clock();
    file_fingerprint(path);
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1);
}
