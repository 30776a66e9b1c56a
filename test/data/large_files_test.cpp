// What the fingerprint of a data set holds where its files are larger than 256 MiB together.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "data/data_file.hpp"
#include "data/picture_fixture.hpp"
#include "io/source_files.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMegabyte = 1 << 20;

std::string sparse(const TempFolder& folder, const std::string& name, int64_t bytes) {
    fs::create_directories(fs::path(folder / name).parent_path());
    const std::string path = folder.write(name, std::string());
    fs::resize_file(path, static_cast<uintmax_t>(bytes));
    return path;
}

void put(const std::string& path, int64_t offset, char byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put(byte);
}

/// Checks which bytes of `path` a fingerprint holds: those up to a MiB from its ends.
template <class Fingerprint>
void check_ends_alone_count(const std::string& path, int64_t size, Fingerprint fingerprint) {
    const std::string plain = fingerprint();
    const auto changes = [&](int64_t offset) {
        put(path, offset, 'x');
        const bool other = fingerprint() != plain;
        put(path, offset, '\0');
        return other;
    };
    for (const int64_t at : {int64_t{0}, kMegabyte - 1, size - kMegabyte, size - 1}) CHECK(changes(at));
    for (const int64_t at : {kMegabyte, size / 2, size - kMegabyte - 1}) CHECK(!changes(at));
    CHECK(fingerprint() == plain);
}

}  // namespace

TEST_CASE("files that are small each and large together count by their ends, too") {
    const TempFolder folder;
    constexpr int64_t kSize = 100 * kMegabyte;
    std::vector<std::string> paths;
    for (const char* name : {"a", "b", "c"}) paths.push_back(sparse(folder, name, kSize));
    check_ends_alone_count(paths[1], kSize, [&] { return files_fingerprint(open_data_files(paths, "")); });
    // The twin: two of them are below 256 MiB, and there the middle counts.
    paths.pop_back();
    const std::string plain = files_fingerprint(open_data_files(paths, ""));
    put(paths[1], kSize / 2, 'x');
    CHECK(files_fingerprint(open_data_files(paths, "")) != plain);
}

TEST_CASE("of a large folder of pictures names, sizes and the ends of the files count") {
    const TempFolder folder;
    constexpr int64_t kSize = 100 * kMegabyte;
    std::vector<std::string> paths;
    for (const char* name : {"cat/1.png", "cat/2.png", "dog/1.png"}) paths.push_back(sparse(folder, name, kSize));
    const auto fingerprint = [&] {
        return open_data(config_for("image_folder", {folder.path()}, {4, 4, 3})).train->fingerprint();
    };
    check_ends_alone_count(paths[1], kSize, fingerprint);
    const std::string plain = fingerprint();
    fs::resize_file(paths[1], kSize + 1);
    CHECK(fingerprint() != plain);
    fs::resize_file(paths[1], kSize);
    fs::rename(paths[1], folder / "cat/3.png");
    CHECK(fingerprint() != plain);
}
